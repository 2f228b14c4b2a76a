module @m {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xi32>
    %1 = stablehlo.add %a, %0 : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
