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
