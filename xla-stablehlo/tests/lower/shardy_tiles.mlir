module @m {
  sdy.mesh @mesh = <["x"=4, "y"=2, "z"=2]>
  sdy.mesh @one = <["x"=1, "y"=1]>
  sdy.mesh @ox = <["x"=1, "y"=4]>
  func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>},
    %b: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}, {"y"}]>}, %c: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@ox, [{"x"}, {"y"}]>}
   , %d: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x", "y", "z"}>}
   , %e: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}, replicated={"y"}>}
   , %f: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, [], unreduced={"x"}>}
   , %g: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@ox, [{"x"}, {}]>}
   , %h: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}, {"x"}]>}
   , %i: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}, {"x"}], unreduced={"y"}>}
   , %j: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "z"}, {"x"}]>}
   , %k: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<mesh<[], device_ids=[2]>, []>}
   , %l: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<mesh<["a b"=2,"c\"d"=2], device_ids=[0,2,1,3]>, [{"a b"},{?}]>}
   ) -> tensor<8x16xf32> {
    return %a : tensor<8x16xf32>
  }
}
