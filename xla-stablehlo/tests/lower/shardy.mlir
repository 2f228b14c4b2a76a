module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32, mhlo.frontend_attributes = {foo = "bar", baz = "1"}, xla.other = "a"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
  sdy.mesh @empty = <[]>
  func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1, {"y", ?}p2]>, mhlo.frontend_attributes = {k = "v"}, mhlo.memory_kind = "device", mhlo.layout_mode = "{0,1}"},
      %b: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"x":(2)2}], replicated={"y"}>, tf.aliasing_output = 0 : i32},
      %c: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh2, [{"a"}, {}]>, mhlo.memory_kind = "pinned_host"},
      %d: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@max, []>, jax.buffer_donor = true},
      %e: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>},
      %f: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=2,"w"=4]>, [{"w"}, {}]>},
      %g: tensor<8x16xf32>
      ) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>, mhlo.layout_mode = "default", mhlo.frontend_attributes = {r = "s"}, mhlo.memory_kind = "pinned_host"}, tensor<8x16xf32>) {
    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]> : tensor<8x16xf32>
    %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<8x16xf32>
    sdy.sharding_group %1 group_id=3 : tensor<8x16xf32>
    sdy.sharding_group %0 group_id=3 : tensor<8x16xf32>
    %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8x16xf32>
    %3 = sdy.named_computation<"foo">(%2) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"y"}, {}]>] (%arg1: tensor<8x16xf32>) {
      %4 = stablehlo.add %arg1, %arg1 : tensor<8x16xf32>
      sdy.return %4 : tensor<8x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %5 = sdy.data_flow_edge %3 sharding=<@mesh, [{"x"}, {}]> : tensor<8x16xf32>
    %6 = stablehlo.add %5, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>, mhlo.frontend_attributes = {op = "add"}} : tensor<8x16xf32>
    %7 = stablehlo.add %6, %c : tensor<8x16xf32>
    return %6, %7 : tensor<8x16xf32>, tensor<8x16xf32>
  }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
sdy.sharding_group %a group_id=3 : tensor<8x16xf32>
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
%r = sdy.propagation_barrier %a allowed_direction=FORWARD : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
%r = sdy.data_flow_edge %a sharding=<@mesh, [{"x"}, {}]> : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>, mhlo.frontend_attributes = {op = "add"}} : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1, {"y", ?}p2]>, mhlo.frontend_attributes = {k = "v"}, mhlo.memory_kind = "device", mhlo.layout_mode = "{0,1}"}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"x":(2)2}], replicated={"y"}>, tf.aliasing_output = 0 : i32, mhlo.memory_kind = "pinned_host"}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh2, [{"a"}, {}]>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh2, [{"a":(2)2}, {"a":(4)2}]>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@max, []>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@empty, [{}, {}]>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced=max{"y"}>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=2,"w"=4]>, [{"w"}, {}]>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y","x"}, {}]>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)2}, {}]>}) -> tensor<8x16xf32> {
%r = stablehlo.add %a, %a : tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
%r = stablehlo.custom_call @foo(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x16xf32>) -> tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={} (%b: tensor<8x16xf32>) { sdy.return %b : tensor<8x16xf32> } : (tensor<8x16xf32>) -> tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x"} (%b: tensor<2x16xf32>) { 
 %c = sdy.manual_computation(%b) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"y"} (%d: tensor<2x8xf32>) {
 %e = stablehlo.add %d, %d : tensor<2x8xf32>
 sdy.return %e : tensor<2x8xf32> 
} : (tensor<2x16xf32>) -> tensor<2x16xf32>
 sdy.return %c : tensor<2x16xf32> } : (tensor<8x16xf32>) -> tensor<8x16xf32>
 return %r : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
 sdy.mesh @mesh2 = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[3]>
 sdy.mesh @empty = <[]>
 func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () { sdy.return } : () -> ()
 return %a : tensor<8x16xf32>
 }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%a: tensor<8x16xf32>, %b: tensor<8xf32>) -> (tensor<8x16xf32>, tensor<8xf32>) {
    %0:2 = sdy.manual_computation(%a, %b) in_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{}]>] manual_axes={"x", "y"} (%d: tensor<2x8xf32>, %e: tensor<8xf32>) { 
    sdy.return %d, %e : tensor<2x8xf32>, tensor<8xf32> } : (tensor<8x16xf32>, tensor<8xf32>) -> (tensor<8x16xf32>, tensor<8xf32>)
    %1 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%d: tensor<2x8xf32>) { 
    %t = stablehlo.constant dense<1.0> : tensor<2x8xf32>
    sdy.return %t : tensor<2x8xf32> } : (tensor<8x16xf32>) -> (tensor<8x16xf32>)
    %2 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} () { 
    %t = stablehlo.constant dense<1.0> : tensor<2x8xf32>
    sdy.return %t : tensor<2x8xf32> } : () -> (tensor<8x16xf32>)
    sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[] manual_axes={"x", "y"} (%d: tensor<2x8xf32>) { 
    %s = stablehlo.custom_call @eff(%d) {has_side_effect = true} : (tensor<2x8xf32>) -> tensor<f32>
    sdy.return } : (tensor<8x16xf32>) -> ()
    return %0#0, %0#1 : tensor<8x16xf32>, tensor<8xf32>
  }
}
// -----

module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%a: tensor<8x16xf32>) -> (tensor<8x16xf32>) {
    %t = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dense<1.0> : tensor<8x16xf32>
    %t1 = stablehlo.add %t, %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=16}>} : tensor<8x16xf32>
    %t2:2 = stablehlo.custom_call @foo(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {"y"}]>]>} : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
    %tok = stablehlo.create_token {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : !stablehlo.token
    return %t1 : tensor<8x16xf32>
  }
}
