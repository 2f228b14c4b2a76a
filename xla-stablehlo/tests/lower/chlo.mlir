// A ragged dot, and one as a composite.
module {
  func.func public @main(%l: tensor<5x3xf32>, %r: tensor<2x3x2xf32>, %g: tensor<2xi64>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
    %0 = "chlo.ragged_dot"(%l, %r, %g) {
      ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>,
      precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>]
    } : (tensor<5x3xf32>, tensor<2x3x2xf32>, tensor<2xi64>) -> tensor<5x2xf32>
    %1 = stablehlo.composite "chlo.ragged_dot" %l, %r, %g {composite_attributes = {precision_config = ["HIGHEST", "DEFAULT"], ragged_dot_dimension_numbers = [dense<> : tensor<0xi64>, dense<> : tensor<0xi64>, dense<1> : tensor<1xi64>, dense<1> : tensor<1xi64>, dense<0> : tensor<1xi64>, dense<0> : tensor<1xi64>]}, decomposition = @impl, version = 1 : i32} : (tensor<5x3xf32>, tensor<2x3x2xf32>, tensor<2xi64>) -> tensor<5x2xf32>
    return %0, %1 : tensor<5x2xf32>, tensor<5x2xf32>
  }
  func.func private @impl(%l: tensor<5x3xf32>, %r: tensor<2x3x2xf32>, %g: tensor<2xi64>) -> tensor<5x2xf32> {
    %c = stablehlo.constant dense<0.0> : tensor<5x2xf32>
    return %c : tensor<5x2xf32>
  }
}
// -----
// Two ragged dimensions.
func.func @main(%l: tensor<5x3xf32>, %r: tensor<2x3x2xf32>, %g: tensor<2xi64>) -> tensor<5x2xf32> {
  %0 = "chlo.ragged_dot"(%l, %r, %g) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0, 1], rhs_group_dimensions = [0]>} : (tensor<5x3xf32>, tensor<2x3x2xf32>, tensor<2xi64>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}
// -----
// A scan.
func.func @main(%x: tensor<4xi32>, %z: tensor<i32>) -> (tensor<4xi32>, tensor<i32>) {
  %0:2 = chlo.scan(%x) inits(%z) dimension=0 attributes {is_reverse = true, is_associative = true} {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1, %1 : tensor<i32>, tensor<i32>
  } : (tensor<4xi32>, tensor<i32>) -> (tensor<4xi32>, tensor<i32>)
  return %0#0, %0#1 : tensor<4xi32>, tensor<i32>
}
// -----
// A scan in generic form.
func.func @main(%x: tensor<4xi32>, %z: tensor<i32>) -> (tensor<4xi32>, tensor<i32>) {
  %0:2 = "chlo.scan"(%x, %z) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1, %1 : tensor<i32>, tensor<i32>
  }) : (tensor<4xi32>, tensor<i32>) -> (tensor<4xi32>, tensor<i32>)
  return %0#0, %0#1 : tensor<4xi32>, tensor<i32>
}
// -----
// A scan whose operands are not what it says.
func.func @main(%x: tensor<4xi32>, %z: tensor<i32>) -> (tensor<4xi32>, tensor<i32>) {
  %0:2 = "chlo.scan"(%x, %z) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 2>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %a, %b : tensor<i32>, tensor<i32>
  }) : (tensor<4xi32>, tensor<i32>) -> (tensor<4xi32>, tensor<i32>)
  return %0#0, %0#1 : tensor<4xi32>, tensor<i32>
}
