// Operations of MHLO that StableHLO has, in its text forms.
module {
  func.func public @main(%x: tensor<4xf32>, %m: tensor<2x2xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<2x2xf32>) {
    %c = mhlo.constant dense<1.0> : tensor<4xf32>
    %z = "mhlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %0 = mhlo.add %x, %c : tensor<4xf32>
    %1 = mhlo.reduce(%0 init: %z) applies mhlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %p = mhlo.compare LT, %x, %c, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %2 = mhlo.select %p, %x, %c : tensor<4xi1>, tensor<4xf32>
    %3 = "mhlo.dot_general"(%m, %m) {dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#mhlo<precision HIGH>, #mhlo<precision HIGH>]} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %1, %2, %3 : tensor<f32>, tensor<4xf32>, tensor<2x2xf32>
  }
}
// -----
// Operations of MHLO that HLO has, and StableHLO lacks.
module {
  func.func public @main(%x: tensor<4xf32>, %t: !mhlo.token) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xi32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = mhlo.copy %x : tensor<4xf32>
    %1:2 = mhlo.topk(%0, k=2, largest=false) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
    %2 = mhlo.erf %x : tensor<4xf32>
    %3 = "mhlo.add_dependency"(%x, %t) : (tensor<4xf32>, !mhlo.token) -> tensor<4xf32>
    return %0, %1#0, %1#1, %2, %3 : tensor<4xf32>, tensor<2xf32>, tensor<2xi32>, tensor<4xf32>, tensor<4xf32>
  }
}
// -----
// Operations of MHLO as custom calls.
module {
  func.func public @main(%x: tensor<2x5xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x5xf32>) {
    %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true}, mhlo.version = 1 : i64} : (tensor<2x5xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
    %1 = stablehlo.custom_call @mhlo.acos(%x) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<2x5xf32>) -> tensor<2x5xf32>
    return %0#0, %0#1, %1 : tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x5xf32>
  }
}
// -----
// An operation of MHLO that HLO lacks.
module {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "mhlo.trace"(%x) {tag = "x"} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
