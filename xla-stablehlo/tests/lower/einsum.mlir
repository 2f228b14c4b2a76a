module @m {
  func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x5xf32>) -> (tensor<4x5xf32>, tensor<4xf32>) {
    %0 = "stablehlo.einsum"(%a, %b) {einsum_config = "ab,bc->ac"}: (tensor<4x8xf32>, tensor<8x5xf32>) -> (tensor<4x5xf32>)
    %1 = "stablehlo.unary_einsum"(%a) {einsum_config = "ab->a"}: (tensor<4x8xf32>) -> (tensor<4xf32>)
    return %0, %1 : tensor<4x5xf32>, tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x5xf32>) -> (tensor<4x5xf32>) {
    %0 = "stablehlo.einsum"(%a, %b) {einsum_config = "ab,bc->ac"}: (tensor<4x8xf32>, tensor<8x5xf32>) -> (tensor<4x5xf32>)
    return %0 : tensor<4x5xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<5x4x8xf32>, %b: tensor<5x3xi32>) -> (tensor<5x3x8xf32>) {
    %0 = "stablehlo.torch_index_select"(%a, %b) {dim = 1 : i64, batch_dims = 1 : i64}: (tensor<5x4x8xf32>, tensor<5x3xi32>) -> (tensor<5x3x8xf32>)
    return %0 : tensor<5x3x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8x3xf32>, %b: tensor<4x3x7xf32>) -> (tensor<7x4x8xf32>) {
    %0 = "stablehlo.einsum"(%a, %b) {einsum_config = "abc,acd->dab"}: (tensor<4x8x3xf32>, tensor<4x3x7xf32>) -> (tensor<7x4x8xf32>)
    return %0 : tensor<7x4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8x3xf32>, %b: tensor<3x7xf32>) -> (tensor<4x8xf32>) {
    %0 = "stablehlo.einsum"(%a, %b) {einsum_config = "abc,cd->ab"}: (tensor<4x8x3xf32>, tensor<3x7xf32>) -> (tensor<4x8xf32>)
    return %0 : tensor<4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = "stablehlo.einsum"(%a, %b) {einsum_config = "aa,a->a"}: (tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    return %0 : tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<2x4x4xf32>, %b: tensor<2x4x5xf32>) -> (tensor<2x4x5xf32>) {
    %0 = "stablehlo.einsum"(%a, %b) {einsum_config = "...ab,...bc->...ac"}: (tensor<2x4x4xf32>, tensor<2x4x5xf32>) -> (tensor<2x4x5xf32>)
    return %0 : tensor<2x4x5xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<5x4x8xf32>, %b: tensor<3x2xi64>) -> (tensor<5x3x2x8xf32>) {
    %0 = "stablehlo.torch_index_select"(%a, %b) {dim = 1 : i64, batch_dims = 0 : i64}: (tensor<5x4x8xf32>, tensor<3x2xi64>) -> (tensor<5x3x2x8xf32>)
    return %0 : tensor<5x3x2x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<f32>, tensor<4x4xf32>) {
    %0 = "stablehlo.unary_einsum"(%a) {einsum_config = "aa->a"} : (tensor<4x4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.unary_einsum"(%a) {einsum_config = "aa->"} : (tensor<4x4xf32>) -> tensor<f32>
    %2 = "stablehlo.unary_einsum"(%a) {einsum_config = "...ab->...ba"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %0, %1, %2 : tensor<4xf32>, tensor<f32>, tensor<4x4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x5xf32>) -> tensor<5xf32> {
    %0 = "stablehlo.unary_einsum"(%a) {einsum_config = "aa->a"} : (tensor<4x5xf32>) -> tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x5xf32>) -> tensor<5xf32> {
    %0 = "stablehlo.unary_einsum"(%a) {einsum_config = "ab->c"} : (tensor<4x5xf32>) -> tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}
