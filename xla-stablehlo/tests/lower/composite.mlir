module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.composite "my.op" %a {composite_attributes = {n = 1 : i64, s = "x\"y", f = 1.5 : f32, arr = array<i64: 1, 2>, d = {z = true, t = f32, dd = dense<[1, 2]> : tensor<2xi32>}, l = [1, "a"], u, sym = @foo}, decomposition = @impl, version = 2 : i32, mhlo.frontend_attributes = {q = "w"}} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.composite "my.op0" %0 {decomposition = @impl} : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @impl(%a: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0:2 = stablehlo.composite "my.op" %a {decomposition = @impl, version = 2 : i32} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @impl(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0, %a : tensor<4xf32>, tensor<4xf32>
  }
}
