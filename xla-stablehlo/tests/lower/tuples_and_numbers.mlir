module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<3x2x4xf32>) {
    %0 = "stablehlo.broadcast"(%a) {broadcast_sizes = array<i64: 3, 2>}: (tensor<4xf32>) -> (tensor<3x2x4xf32>)
    return %0 : tensor<3x2x4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>, %b: tensor<i32>) -> (tuple<tensor<4xf32>, tensor<i32>>) {
    %0 = "stablehlo.tuple"(%a, %b) : (tensor<4xf32>, tensor<i32>) -> tuple<tensor<4xf32>, tensor<i32>>
    return %0 : tuple<tensor<4xf32>, tensor<i32>>
  }
}
// -----

module @m {
  func.func @main(%a: tuple<tensor<4xf32>, tensor<i32>>) -> (tensor<i32>) {
    %0 = "stablehlo.get_tuple_element"(%a) {index = 1 : i32}: (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %s = stablehlo.constant dense<[4, 8]> : tensor<2xi64>
    %0 = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution UNIFORM>}: (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x8xf32>
    %1 = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution NORMAL>}: (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x8xf32>
    return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}
// -----

module @constants_without_elements {
  func.func @main() -> (tensor<0x4xf32>, tensor<2x0xi1>, tensor<0xcomplex<f32>>) {
    %0 = stablehlo.constant dense<0xFF800000> : tensor<0x4xf32>
    %1 = stablehlo.constant dense<true> : tensor<2x0xi1>
    %2 = stablehlo.constant dense<(1.0, 2.0)> : tensor<0xcomplex<f32>>
    return %0, %1, %2 : tensor<0x4xf32>, tensor<2x0xi1>, tensor<0xcomplex<f32>>
  }
}
