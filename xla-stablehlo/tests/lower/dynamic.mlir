module @m {
  func.func @main(%a: tensor<8xf32>) -> tensor<2x4xf32> {
    %s = stablehlo.constant dense<[2, 4]> : tensor<2xi64>
    %0 = stablehlo.dynamic_reshape %a, %s : (tensor<8xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<8xf32>) -> tensor<?x4xf32> {
    %s = stablehlo.constant dense<[2, 4]> : tensor<2xi64>
    %0 = stablehlo.dynamic_reshape %a, %s : (tensor<8xf32>, tensor<2xi64>) -> tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<8xf32>, %s: tensor<2xi32>) -> tensor<?x4xf32, #stablehlo.bounds<2, ?>> {
    %0 = stablehlo.dynamic_reshape %a, %s : (tensor<8xf32>, tensor<2xi32>) -> tensor<?x4xf32, #stablehlo.bounds<2, ?>>
    return %0 : tensor<?x4xf32, #stablehlo.bounds<2, ?>>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>, %s: tensor<2xi32>) -> tensor<?x4xf32, #stablehlo.bounds<2, ?>> {
    %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims=[1] : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x4xf32, #stablehlo.bounds<2, ?>>
    return %0 : tensor<?x4xf32, #stablehlo.bounds<2, ?>>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>) -> tensor<2x4xf32> {
    %s = stablehlo.constant dense<[2, 4]> : tensor<2xi64>
    %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims=[1] : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
// -----

module @m {
  func.func @main(%s: tensor<2xi32>) -> tensor<?x4xf32, #stablehlo.bounds<2, ?>> {
    %0 = stablehlo.dynamic_iota %s, dim=0 : (tensor<2xi32>) -> tensor<?x4xf32, #stablehlo.bounds<2, ?>>
    return %0 : tensor<?x4xf32, #stablehlo.bounds<2, ?>>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>, %v: tensor<f32>) -> tensor<7xf32> {
    %l = stablehlo.constant dense<[1]> : tensor<1xi64>
    %i = stablehlo.constant dense<[0]> : tensor<1xi64>
    %h = stablehlo.constant dense<[2]> : tensor<1xi64>
    %0 = stablehlo.dynamic_pad %a, %v, %l, %h, %i : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<7xf32>
    return %0 : tensor<7xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>, %l: tensor<1xi64>) -> tensor<2xf32> {
    %i = stablehlo.constant dense<[1]> : tensor<1xi64>
    %h = stablehlo.constant dense<[3]> : tensor<1xi64>
    %l2 = stablehlo.constant dense<[1]> : tensor<1xi64>
    %0 = stablehlo.real_dynamic_slice %a, %l2, %h, %i : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>, %l: tensor<1xi32>, %h:tensor<1xi32>) -> tensor<?xf32, #stablehlo.bounds<4>> {
    %i = stablehlo.constant dense<[1]> : tensor<1xi32>
    %0 = stablehlo.real_dynamic_slice %a, %l, %h, %i : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32, #stablehlo.bounds<4>>
    return %0 : tensor<?xf32, #stablehlo.bounds<4>>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x5xf32>, %l: tensor<3x1xi32>) -> tensor<3x1x5xf32> {
    %i = stablehlo.constant dense<[1, 5]> : tensor<2xi32>
    %0 = "stablehlo.dynamic_gather"(%a, %l, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map=[0], index_vector_dim = 1>, indices_are_sorted = false} : (tensor<4x5xf32>, tensor<3x1xi32>, tensor<2xi32>) -> tensor<3x1x5xf32>
    return %0 : tensor<3x1x5xf32>
  }
}
// -----

module @m {
  func.func @main(%arg0: tensor<1x8x8x207xf32>, %arg1: tensor<3x3x207x16xf32>) -> tensor<1x8x8x16xf32> {
    %p = stablehlo.constant dense<[[1, 1], [1, 1]]> : tensor<2x2xi32>
    %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %p) {batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, window_strides = array<i64: 1, 1>} : (tensor<1x8x8x207xf32>, tensor<3x3x207x16xf32>, tensor<2x2xi32>) -> tensor<1x8x8x16xf32>
    return %0 : tensor<1x8x8x16xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<?x4xf32, #stablehlo.bounds<2, ?>>) -> tensor<?x4xf32, #stablehlo.bounds<2, ?>> {
    %0 = stablehlo.add %a, %a : tensor<?x4xf32, #stablehlo.bounds<2, ?>>
    return %0 : tensor<?x4xf32, #stablehlo.bounds<2, ?>>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>> {
    %0 = stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
    return %0 : tensor<?xf32, #stablehlo.bounds<4>>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
    %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<3x4xf32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %twice = stablehlo.multiply %n, %two : tensor<i32>
    %r = stablehlo.reshape %twice : (tensor<i32>) -> tensor<1xi32>
    %four = stablehlo.constant dense<4> : tensor<1xi32>
    %s = stablehlo.concatenate %r, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %s64 = stablehlo.convert %s : (tensor<2xi32>) -> tensor<2xi64>
    %0 = stablehlo.dynamic_broadcast_in_dim %b, %s64, dims = [1] : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
    %1 = stablehlo.add %0, %0 : tensor<?x4xf32>
    %2 = stablehlo.convert %1 : (tensor<?x4xf32>) -> tensor<?x4xf64>
    %3 = stablehlo.convert %2 : (tensor<?x4xf64>) -> tensor<?x4xf32>
    return %3 : tensor<?x4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {
    return %a : tensor<?x4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<8xf32>, %s: tensor<2xi64>) -> tensor<?x4xf32> {
    %0 = stablehlo.dynamic_reshape %a, %s : (tensor<8xf32>, tensor<2xi64>) -> tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>, %v: tensor<f32>, %l: tensor<1xi64>) -> tensor<7xf32> {
    %0 = stablehlo.dynamic_pad %a, %v, %l, %l, %l : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<7xf32>
    return %0 : tensor<7xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>, %l: tensor<1xi64>, %h: tensor<1xi64>) -> tensor<2xf32> {
    %i = stablehlo.constant dense<1> : tensor<1xi64>
    %0 = stablehlo.real_dynamic_slice %a, %l, %h, %i : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<8xf32>) -> tensor<?x4xf32> {
    %s = stablehlo.constant dense<[2, 5]> : tensor<2xi64>
    %0 = stablehlo.dynamic_reshape %a, %s : (tensor<8xf32>, tensor<2xi64>) -> tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
// -----

module @sizes_that_equal_their_bounds {
  func.func @main(%x: tensor<2x13xf32>, %n: tensor<i32>) -> (tensor<2x13xf32>, tensor<2x?xf32, #stablehlo.bounds<?, 13>>) {
    %c = stablehlo.constant dense<13> : tensor<i32>
    %0 = stablehlo.set_dimension_size %x, %c, dim = 1 : (tensor<2x13xf32>, tensor<i32>) -> tensor<2x13xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x13xf32>) -> tensor<2x13xf32>
    %2 = stablehlo.set_dimension_size %x, %n, dim = 1 : (tensor<2x13xf32>, tensor<i32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 13>>
    %3 = stablehlo.set_dimension_size %2, %c, dim = 1 : (tensor<2x?xf32, #stablehlo.bounds<?, 13>>, tensor<i32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 13>>
    return %1, %3 : tensor<2x13xf32>, tensor<2x?xf32, #stablehlo.bounds<?, 13>>
  }
}
