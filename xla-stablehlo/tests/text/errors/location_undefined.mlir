module @m {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    return %a : tensor<4xf32> loc(#loc9)
  }
}
