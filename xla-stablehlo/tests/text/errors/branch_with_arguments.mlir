module @m {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<true> : tensor<i1>
    %0 = "stablehlo.if"(%c) ({
    ^bb0(%x: tensor<4xf32>):
      stablehlo.return %x : tensor<4xf32>
    }, {
      stablehlo.return %b : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
