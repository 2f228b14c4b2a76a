module @rules {
  func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.custom_call @foo(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=1} need_replication={j}, custom>} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
// -----

module @constant_with_sharding {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%a: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
    %t = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dense<1.0> : tensor<8x16xf32>
    %0:2 = stablehlo.custom_call @foo(%a, %t) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {"y"}]>]>} : (tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
    return %0#0, %0#1 : tensor<8x16xf32>, tensor<8x16xf32>
  }
}
// -----

module @unknown_mesh {
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----

module @unknown_axis {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z"}]>]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----

module @shardings_of_others {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{}]>]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----

module @bad_text {
  func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[2]0,1,2}"}) -> tensor<8xf32> {
    return %a : tensor<8xf32>
  }
}
// -----

module @bad_layout {
  func.func @main(%a: tensor<8x8xf32> {mhlo.layout_mode = "{0,0}"}) -> tensor<8x8xf32> {
    return %a : tensor<8x8xf32>
  }
}
// -----

module @bad_frontend_attributes {
  func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.add %a, %a {mhlo.frontend_attributes = {a = 1 : i32}} : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
// -----

module @wrong_number_of_shardings {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<2xf32>) {
      sdy.return %b : tensor<2xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
