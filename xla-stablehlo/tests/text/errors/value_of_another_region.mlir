module @m {
  func.func public @main(%a: tensor<4xf32>, %s: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.reduce"(%a, %s) <{dimensions = array<i64: 0>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      stablehlo.return %x : tensor<f32>
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %x : tensor<f32>
  }
}
