// all_gather of operands of different types.
module @m {
  func.func @main(%a: tensor<2x3xi16>, %b: tensor<2x1xf32>) -> (tensor<2x6xi16>, tensor<2x2xf32>) {
    %0:2 = "stablehlo.all_gather"(%a, %b) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x3xi16>, tensor<2x1xf32>) -> (tensor<2x6xi16>, tensor<2x2xf32>)
    return %0#0, %0#1 : tensor<2x6xi16>, tensor<2x2xf32>
  }
}
// -----

// all_to_all of operands of different types.
module @m {
  func.func @main(%a: tensor<2x4xi16>, %b: tensor<2x2xf32>) -> (tensor<2x4xi16>, tensor<2x2xf32>) {
    %0:2 = "stablehlo.all_to_all"(%a, %b) {split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x4xi16>, tensor<2x2xf32>) -> (tensor<2x4xi16>, tensor<2x2xf32>)
    return %0#0, %0#1 : tensor<2x4xi16>, tensor<2x2xf32>
  }
}
// -----

// A result of all_gather of another type than its operand.
module @m {
  func.func @main(%a: tensor<2x3xi16>, %b: tensor<2x1xf32>) -> (tensor<2x6xi16>, tensor<2x2xf64>) {
    %0:2 = "stablehlo.all_gather"(%a, %b) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x3xi16>, tensor<2x1xf32>) -> (tensor<2x6xi16>, tensor<2x2xf64>)
    return %0#0, %0#1 : tensor<2x6xi16>, tensor<2x2xf64>
  }
}
// -----

// rng whose shape is a constant and left open in its type.
module @m {
  func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<?x2xf32> {
    %s = stablehlo.constant dense<[3, 2]> : tensor<2xi64>
    %0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    return %0 : tensor<?x2xf32>
  }
}
// -----

// rng whose shape is an argument.
module @m {
  func.func @main(%a: tensor<f32>, %b: tensor<f32>, %s: tensor<2xi64>) -> tensor<?x2xf32> {
    %0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<?x2xf32>
    return %0 : tensor<?x2xf32>
  }
}
// -----

// A sharding as an encoded `OpSharding`: tiles 2, 1 of devices 3, 5.
module @m {
  func.func @main(%a: tensor<4x2xf32> {mhlo.sharding = "\08\03\1A\02\02\01\22\02\03\05"}) -> (tensor<4x2xf32> {mhlo.sharding = "\08\04"}) {
    %0 = stablehlo.negate %a {mhlo.sharding = " {replicated}"} : tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
}
// -----

// An encoded sharding that is cut off.
module @m {
  func.func @main(%a: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %0 = stablehlo.negate %a {mhlo.sharding = "\08\03\1A\02\02"} : tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
}
// -----

// set_dimension_size whose type is the bound without saying so, and an operation on it.
module @m {
  func.func @main(%a: tensor<4x3xf32>, %n: tensor<i32>) -> (tensor<4x3xf32>, tensor<i32>) {
    %0 = "stablehlo.set_dimension_size"(%a, %n) {dimension = 1 : i64} : (tensor<4x3xf32>, tensor<i32>) -> tensor<4x3xf32>
    %1 = stablehlo.negate %0 : tensor<4x3xf32>
    %2 = "stablehlo.get_dimension_size"(%1) {dimension = 1 : i64} : (tensor<4x3xf32>) -> tensor<i32>
    return %1, %2 : tensor<4x3xf32>, tensor<i32>
  }
}
// -----

// infeed whose layout of a scalar has a dimension.
module @m {
  func.func @main(%t: !stablehlo.token) -> (tensor<2x3xi32>, tensor<i1>) {
    %0:3 = "stablehlo.infeed"(%t) {infeed_config = "", layout = [[0, 1], [0]]} : (!stablehlo.token) -> (tensor<2x3xi32>, tensor<i1>, !stablehlo.token)
    return %0#0, %0#1 : tensor<2x3xi32>, tensor<i1>
  }
}
// -----

// indices_of_shape_operands of a custom call that do not fit its static result: all operands are passed.
module @m {
  func.func @main(%a: tensor<4xf32>) -> tensor<2x5xf32> {
    %s = stablehlo.constant dense<[7, 5]> : tensor<2xi64>
    %0 = stablehlo.custom_call @f(%a, %s) {indices_of_shape_operands = dense<[1]> : tensor<1xi64>} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x5xf32>
    return %0 : tensor<2x5xf32>
  }
}
// -----

// indices_of_shape_operands of a custom call one of whose results is a tuple.
module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<?xf32>, tuple<tensor<?x1xf32>, tensor<i32>>) {
    %s = stablehlo.constant dense<3> : tensor<1xi64>
    %t = stablehlo.constant dense<[2, 1]> : tensor<2xi64>
    %u = stablehlo.constant dense<> : tensor<0xi64>
    %0:2 = stablehlo.custom_call @f(%a, %s, %t, %u) {indices_of_shape_operands = dense<[1, 2, 3]> : tensor<3xi64>} : (tensor<4xf32>, tensor<1xi64>, tensor<2xi64>, tensor<0xi64>) -> (tensor<?xf32>, tuple<tensor<?x1xf32>, tensor<i32>>)
    return %0#0, %0#1 : tensor<?xf32>, tuple<tensor<?x1xf32>, tensor<i32>>
  }
}
// -----

// An operation of CHLO that broadcasts to a result whose sizes are left open.
module @m {
  func.func @main(%a: tensor<3x1xf32>, %b: tensor<2xf32>) -> tensor<?x?xf32> {
    %0 = chlo.broadcast_subtract %a, %b : (tensor<3x1xf32>, tensor<2xf32>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}
// -----

// Attributes without a counterpart in HLO that no operation reads.
module @m attributes {a.map = affine_map<(d0, d1)[s0] -> (d1, d0 + s0)>, a.set = affine_set<(d0) : (d0 - 1 >= 0)>} {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> attributes {a.list = [strided<[1, ?], offset: 2>, distinct[0]<"x>">]} {
    %0 = stablehlo.negate %a {a.big = dense_resource<blob> : tensor<4xf32>, a.few = sparse<[[0]], [1.0]> : tensor<4xf32>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----

// An attribute without a counterpart in HLO that is a constant's value.
module @m {
  func.func @main() -> tensor<4xf32> {
    %0 = stablehlo.constant dense_resource<blob> : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
