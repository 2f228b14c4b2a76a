module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.uniform_quantize %a : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 1.0:17>>
    %1 = stablehlo.uniform_dequantize %0 : (tensor<4x!quant.uniform<i8:f32, 1.0:17>>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
