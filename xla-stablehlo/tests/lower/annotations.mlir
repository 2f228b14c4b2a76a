module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%a: tensor<8x16xf32>) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>, mhlo.layout_mode = "default", mhlo.frontend_attributes = {r = "s"}, mhlo.memory_kind = "pinned_host"}) {
    %7 = stablehlo.add %a, %a : tensor<8x16xf32>
    return %7 : tensor<8x16xf32>
  }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<8x16xf32>) -> (tensor<8x16xf32> {mhlo.sharding="{devices=[4,2]<=[8]}", mhlo.layout_mode = "default", mhlo.frontend_attributes = {r = "s"}, mhlo.memory_kind = "pinned_host"}) {
    %7 = stablehlo.add %a, %a {mhlo.sharding="{devices=[4,2]<=[8]}"} : tensor<8x16xf32>
    return %7 : tensor<8x16xf32>
  }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%a: tensor<8x16xf32>) -> (tensor<8x16xf32>) attributes {mhlo.frontend_attributes = {fn = "main"}} {
    %7 = call @f(%a) {mhlo.frontend_attributes = {call = "1"}, mhlo.sharding="{replicated}"} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %7 : tensor<8x16xf32>
  }
  func.func private @f(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>, mhlo.frontend_attributes = {k = "v"}}) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>, mhlo.frontend_attributes = {r = "v"}}) attributes {mhlo.frontend_attributes = {fn = "f"}, xla.foo = "bar"} {
    %7 = stablehlo.add %a, %a {mhlo.sharding="{devices=[4,2]<=[8]}"} : tensor<8x16xf32>
    return %7 : tensor<8x16xf32>
  }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<8x16xf32>) -> (tensor<8x16xf32> {mhlo.sharding="{replicated}"}) attributes {mhlo.frontend_attributes = {fn = "main"}} {
    %7 = call @f(%a) {mhlo.frontend_attributes = {call = "1"}, mhlo.sharding="{replicated}"} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %7 : tensor<8x16xf32>
  }
  func.func private @f(%a: tensor<8x16xf32> {mhlo.sharding = "{devices=[4,2]<=[8]}", mhlo.frontend_attributes = {k = "v"}}) -> (tensor<8x16xf32> {mhlo.sharding = "{devices=[4,2]<=[8]}", mhlo.frontend_attributes = {r = "v"}}) attributes {mhlo.frontend_attributes = {fn = "f"}} {
    %7:2 = "stablehlo.custom_call"(%a) {call_target_name="foo", mhlo.sharding="{{devices=[4,2]<=[8]}, {replicated}}", mhlo.frontend_attributes = {k = "v"}}: (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<f32>)
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    %8:2 = stablehlo.while(%x = %7#0, %y = %7#1) : tensor<8x16xf32>, tensor<f32> attributes {mhlo.sharding="{{devices=[4,2]<=[8]}, {replicated}}", mhlo.frontend_attributes = {k = "w"}}
      cond { %p = stablehlo.compare LT, %y, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
       stablehlo.return %p : tensor<i1> } do { 
       stablehlo.return %x, %c : tensor<8x16xf32>, tensor<f32> }
    return %8#0 : tensor<8x16xf32>
  }
}
// -----

module @m {
  func.func @main(%arg0: tensor<4xf32> {jax.result_info="z", xla.foo = "q", mhlo.parameter_replication = [true]}) -> (tensor<4xf32>, tensor<4xf32>) attributes {execution_thread="foo"} {
    %s = stablehlo.custom_call @foo(%arg0) {backend_config = "", called_computations=[@f]} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.convert %s : (tensor<4xf32>) -> tensor<4xf32>
    return %arg0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
}
// -----

module @m attributes {mhlo.input_output_alias = [], mhlo.is_dynamic = true, mhlo.use_auto_spmd_partitioning=false, mhlo.xla_entry_computation_parameter_layouts = [dense<[0,1]> : tensor<2xindex>], mhlo.xla_entry_computation_result_layout = [dense<[0,1]> : tensor<2xindex>], mhlo.cross_program_prefetches=[]} {
  func.func @main(%arg0: tensor<4x4xf32> {mhlo.is_same_data_across_replicas = true}) -> (tensor<4x4xf32>) {
    return %arg0 : tensor<4x4xf32>
  }
}
