// A comma follows the last entry of dimension numbers.
func.func @main(%x: tensor<2x3xf32>, %k: tensor<3x2xf32>, %i: tensor<2x1xi32>) -> (tensor<2x2xf32>, tensor<2x3xf32>) {
  %0 = "stablehlo.dot_general"(%x, %k) {dot_dimension_numbers = #stablehlo.dot<
    lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [0],
  >} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %1 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<
    offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1,
  >, slice_sizes = array<i64: 1, 3>} : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x3xf32>
}
// -----
// A comma follows the last entry of a window.
func.func @main(%x: tensor<1x4x5x1xf32>, %k: tensor<2x2x1x1xf32>) -> tensor<1x3x4x1xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {
    stride = [1, 1],
    pad = [[0, 0], [0, 0]],
  } {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x5x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x3x4x1xf32>
  return %0 : tensor<1x3x4x1xf32>
}
// -----
// Two commas.
func.func @main(%x: tensor<2x3xf32>, %k: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.dot_general"(%x, %k) {dot_dimension_numbers = #stablehlo.dot<
    lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0],,
  >} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// -----
// The raw form of a convolution's dimension numbers.
func.func @main(%x: tensor<1x4x5x1xf32>, %k: tensor<2x2x1x1xf32>) -> tensor<1x3x4x1xf32> {
  %0 = "stablehlo.convolution"(%x, %k) {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2],
      kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1],
      output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>} : (tensor<1x4x5x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x3x4x1xf32>
  return %0 : tensor<1x3x4x1xf32>
}
// -----
// Constants of dialects arith and shape, a cast, and the older form of a constant.
func.func @main(%x: tensor<3xi32>) -> (tensor<3xi32>, tensor<2x3xi32>) {
  %c = arith.constant dense<[1, 2, 3]> : tensor<3xi32>
  %scalar = arith.constant 7 : i64
  %truth = arith.constant true
  %index = arith.constant 2 : index
  %old = stablehlo.constant() {value = dense<-128> : tensor<3xi32>} : () -> tensor<3xi32>
  %0 = stablehlo.add %x, %c : tensor<3xi32>
  %1 = stablehlo.add %0, %old : tensor<3xi32>
  %2 = tensor.cast %1 : tensor<3xi32> to tensor<3xi32>
  %s = shape.const_shape [2, 3] : tensor<2xindex>
  %3 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<3xi32>, tensor<2xindex>) -> tensor<2x3xi32>
  return %2, %3 : tensor<3xi32>, tensor<2x3xi32>
}
// -----
// One precision for both operands, and bounds under their older name.
func.func @main(%x: tensor<2x2xf32>, %y: tensor<?xf32, #stablehlo.type_extensions<bounds = [4]>>) -> (tensor<2x2xf32>, tensor<?xf32, #mhlo.type_extensions<bounds = [4]>>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], precision = [HIGHEST] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %y : tensor<2x2xf32>, tensor<?xf32, #stablehlo.type_extensions<bounds = [4]>>
}
// -----
// A comparison without a type, and one of signed integers as unsigned ones.
func.func @main(%x: tensor<4xi32>) -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = chlo.broadcast_compare %x, %x {comparison_direction = #chlo<comparison_direction EQ>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %1 = stablehlo.compare LT, %x, %x, UNSIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  return %0, %1 : tensor<4xi1>, tensor<4xi1>
}
