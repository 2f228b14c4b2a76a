// arg0=f32[8,4]
module @dynamic {
  func.func public @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
// -----
// arg0=f32[3,4]
module @shape_computations {
  func.func @main(%arg0: tensor<?x4xf32>) -> (tensor<?xf32>, tensor<?x4xi32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<i32>) {
    %four = stablehlo.constant dense<4> : tensor<1xi32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %count = stablehlo.multiply %n1, %four : tensor<1xi32>
    %flat = stablehlo.dynamic_reshape %arg0, %count : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
    %dims = stablehlo.concatenate %n1, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %iota = stablehlo.dynamic_iota %dims, dim = 0 : (tensor<2xi32>) -> tensor<?x4xi32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %ones = stablehlo.dynamic_broadcast_in_dim %one, %dims, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
    %low = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
    %none = stablehlo.constant dense<0> : tensor<2xi32>
    %padded = stablehlo.dynamic_pad %ones, %one, %low, %dims, %none : (tensor<?x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %strides = stablehlo.constant dense<1> : tensor<2xi32>
    %slice = stablehlo.real_dynamic_slice %padded, %low, %dims, %strides : (tensor<?x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>
    %half = stablehlo.divide %n, %two : tensor<i32>
    return %flat, %iota, %ones, %slice, %half : tensor<?xf32>, tensor<?x4xi32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<i32>
  }
}
// -----
// arg0=f32[3,4],arg1=f32[5,4]
module @functions_of_two_shapes {
  func.func @main(%arg0: tensor<?x4xf32>, %arg1: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
    %0 = call @twice(%arg0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %1 = call @twice(%arg1) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %2 = call @twice(%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    return %0, %1, %2 : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  }
  func.func private @twice(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
// -----
// arg0=f32[3]
module @sizes_of_loops_and_branches {
  func.func @main(%arg0: tensor<?xf32>, %p: tensor<i1>) -> tensor<?xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %x = %arg0) : tensor<i32>, tensor<?xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %dims = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %iota = stablehlo.dynamic_iota %dims, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      %sum = stablehlo.add %x, %iota : tensor<?xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %sum : tensor<i32>, tensor<?xf32>
    }
    %1 = "stablehlo.if"(%p) ({
      %dims = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %iota = stablehlo.dynamic_iota %dims, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      stablehlo.return %iota : tensor<?xf32>
    }, {
      stablehlo.return %0#1 : tensor<?xf32>
    }) : (tensor<i1>) -> tensor<?xf32>
    return %1 : tensor<?xf32>
  }
}
// -----
// arg0=f32[5,5]
module @results_whose_shapes_are_operands {
  func.func @main(%arg0: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %dims = stablehlo.concatenate %n1, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %0 = stablehlo.custom_call @my_target(%arg0, %dims) {indices_of_shape_operands = dense<[1]> : tensor<1xi64>,
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}
      : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}
// -----
// arg0=f32[4,8],arg1=f32[3]
module @bits {
  func.func @main(%arg0: tensor<?x8xf32>, %arg1: tensor<?xf32>) -> (tensor<?x8x4xui8>, tensor<?xf64>) {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<?x8xf32>) -> tensor<?x8x4xui8>
    %1 = stablehlo.convert %arg1 : (tensor<?xf32>) -> tensor<?xf64>
    return %0, %1 : tensor<?x8x4xui8>, tensor<?xf64>
  }
}
// -----
// arg0=f32[3,2]
module @bounded {
  func.func @main(%arg0: tensor<?x2xf32, #stablehlo.bounds<5, ?>>) -> tensor<?x2xf32, #stablehlo.bounds<5, ?>> {
    %0 = stablehlo.negate %arg0 : tensor<?x2xf32, #stablehlo.bounds<5, ?>>
    return %0 : tensor<?x2xf32, #stablehlo.bounds<5, ?>>
  }
}
