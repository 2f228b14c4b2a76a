module @m {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0:2 = stablehlo.while(%i = %a) : tensor<4xf32>
    cond { stablehlo.return %a : tensor<4xf32> } do { stablehlo.return %i : tensor<4xf32> }
    return %0#0 : tensor<4xf32>
  }
}
