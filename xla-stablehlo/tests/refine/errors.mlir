//
module { func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<?x4x?xf32>) -> tensor<?x4x?xf32> { return %arg1 : tensor<?x4x?xf32> } }
// -----
// arg0=f32[8]
module { func.func @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> { return %arg0 : tensor<?x4xf32> } }
// -----
// arg0=f32[8,5]
module { func.func @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> { return %arg0 : tensor<?x4xf32> } }
// -----
// arg0=f64[8,4]
module { func.func @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> { return %arg0 : tensor<?x4xf32> } }
// -----
// arg0=f32[8,4],arg3=f32[2]
module { func.func @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> { return %arg0 : tensor<?x4xf32> } }
// -----
// arg0=f32[6]
module { func.func @main(%arg0: tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<?xf32, #stablehlo.bounds<5>> { return %arg0 : tensor<?xf32, #stablehlo.bounds<5>> } }
// -----
// arg0=f32[3],arg1=f32[2]
module {
  func.func @main(%arg0: tensor<?xf32>, %arg1: tensor<?xf32>) -> tensor<?xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
// -----
// arg0=f32[3]
module {
  func.func @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {
    %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %c = stablehlo.compare GE, %n, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%c, %n, %four) {api_version = 2 : i32, error_message = "{0} rows, at least {1} are needed", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    return %arg0 : tensor<?xf32>
  }
}
// -----
// arg0=f32[3]
module {
  func.func @main(%arg0: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
    %0 = call @f(%n) : (tensor<1xi32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
  func.func private @f(%n: tensor<1xi32>) -> tensor<?xf32> {
    %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
// -----
// arg0=f32[3]
module {
  func.func @main(%arg0: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
    %0 = stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%arg0, %n) : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
// -----
// arg0=f32[2147483647,2147483647,2147483647]
module { func.func @main(%arg0: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> { return %arg0 : tensor<?x?x?xf32> } }
// -----
// arg0=f32[4]
module { func.func @main(%arg0: tensor<*xf32>) -> tensor<*xf32> { return %arg0 : tensor<*xf32> } }
