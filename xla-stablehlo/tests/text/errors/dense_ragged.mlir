module @m {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.constant dense<[[1, 2], [3]]> : tensor<2x2xi32>
    return %0 : tensor<4xf32>
  }
}
