// A scatter whose function has a wider type.
func.func @main(%x: tensor<4xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>) -> tensor<4xf64> {
  %2 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %s = stablehlo.add %a, %b : tensor<f64>
    stablehlo.return %s : tensor<f64>
  }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf64>
  return %2 : tensor<4xf64>
}
// -----
// The window's choice is made in the operand's own type.
func.func @main(%y: tensor<4x4xf32>, %z: tensor<2x2xf32>, %d: tensor<f32>) -> tensor<4x4xf64> {
  %3 = "stablehlo.select_and_scatter"(%y, %z, %d) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
  }, {
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %s = stablehlo.add %a, %b : tensor<f64>
    stablehlo.return %s : tensor<f64>
  }) : (tensor<4x4xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x4xf64>
  return %3 : tensor<4x4xf64>
}
// -----
// Collectives.
func.func @main(%x: tensor<4xf32>, %y: tensor<4xi8>) -> (tensor<4xf64>, tensor<2xi32>) {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %s = stablehlo.add %a, %b : tensor<f64>
    stablehlo.return %s : tensor<f64>
  }) : (tensor<4xf32>) -> tensor<4xf64>
  %1 = "stablehlo.reduce_scatter"(%y) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<4xi8>) -> tensor<2xi32>
  return %0, %1 : tensor<4xf64>, tensor<2xi32>
}
// -----
// Reductions and windows.
func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> (tensor<f64>, tensor<3xf64>) {
  %0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %s = stablehlo.add %a, %b : tensor<f64>
    stablehlo.return %s : tensor<f64>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<f64>
  %1 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %s = stablehlo.add %a, %b : tensor<f64>
    stablehlo.return %s : tensor<f64>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf64>
  return %0, %1 : tensor<f64>, tensor<3xf64>
}
// -----
// Real numbers of complex ones.
func.func @main(%x: tensor<3xcomplex<f64>>) -> (tensor<3xf64>, tensor<3xi1>, tensor<3xi32>, tensor<3xf32>, tensor<3xcomplex<f32>>) {
  %0 = stablehlo.convert %x : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
  %1 = stablehlo.convert %x : (tensor<3xcomplex<f64>>) -> tensor<3xi1>
  %2 = stablehlo.convert %x : (tensor<3xcomplex<f64>>) -> tensor<3xi32>
  %3 = stablehlo.convert %x : (tensor<3xcomplex<f64>>) -> tensor<3xf32>
  %4 = stablehlo.convert %x : (tensor<3xcomplex<f64>>) -> tensor<3xcomplex<f32>>
  return %0, %1, %2, %3, %4 : tensor<3xf64>, tensor<3xi1>, tensor<3xi32>, tensor<3xf32>, tensor<3xcomplex<f32>>
}
