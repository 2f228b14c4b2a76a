module @jit_tensor_parallel_mlp_shardy attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}, {name = "b", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %arg2: tensor<10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<6x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{}, {"b"}]>, <@mesh, [{"b"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a", "b"} (%arg3: tensor<3x8xf32>, %arg4: tensor<8x5xf32>, %arg5: tensor<5x4xf32>) {
      %1 = stablehlo.dot_general %arg3, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
      %2 = func.call @relu(%1) : (tensor<3x5xf32>) -> tensor<3x5xf32>
      %3 = stablehlo.dot_general %2, %arg5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
      %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %5 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %5 : tensor<f32>
      }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
      sdy.return %4 : tensor<3x4xf32>
    } : (tensor<6x8xf32>, tensor<8x10xf32>, tensor<10x4xf32>) -> tensor<6x4xf32>
    return %0 : tensor<6x4xf32>
  }
  func.func private @relu(%arg0: tensor<3x5xf32>) -> tensor<3x5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<3x5xf32>
    return %1 : tensor<3x5xf32>
  }
}
// -----

module @jit_tensor_parallel_mlp_gspmd attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x8xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}, %arg1: tensor<8x10xf32> {mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"}, %arg2: tensor<10x4xf32> {mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"}) -> (tensor<6x4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "", mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"} : (tensor<6x8xf32>) -> tensor<6x8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<6x8xf32>) -> tensor<3x8xf32>
    %2 = stablehlo.custom_call @Sharding(%arg1) {backend_config = "", mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"} : (tensor<8x10xf32>) -> tensor<8x10xf32>
    %3 = stablehlo.custom_call @SPMDFullToShardShape(%2) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<8x10xf32>) -> tensor<8x5xf32>
    %4 = stablehlo.custom_call @Sharding(%arg2) {backend_config = "", mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"} : (tensor<10x4xf32>) -> tensor<10x4xf32>
    %5 = stablehlo.custom_call @SPMDFullToShardShape(%4) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<10x4xf32>) -> tensor<5x4xf32>
    %6 = call @shmap_body(%1, %3, %5) : (tensor<3x8xf32>, tensor<8x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
    %7 = stablehlo.custom_call @Sharding(%6) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %8 = stablehlo.custom_call @SPMDShardToFullShape(%7) {backend_config = "", mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"} : (tensor<3x4xf32>) -> tensor<6x4xf32>
    return %8 : tensor<6x4xf32>
  }
  func.func private @shmap_body(%arg0: tensor<3x8xf32>, %arg1: tensor<8x5xf32>, %arg2: tensor<5x4xf32>) -> (tensor<3x4xf32> {jax.result_info = "[('a',), None]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
    %1 = call @relu(%0) : (tensor<3x5xf32>) -> tensor<3x5xf32>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
    %3 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %4 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    return %3 : tensor<3x4xf32>
  }
  func.func private @relu(%arg0: tensor<3x5xf32>) -> tensor<3x5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<3x5xf32>
    return %1 : tensor<3x5xf32>
  }
}
// -----

module @jit_matmul_2d_shardy_auto attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}, {name = "b", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}) -> (tensor<8x4xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
// -----

module @jit_matmul_2d_gspmd_auto attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x6xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}, %arg1: tensor<6x4xf32> {mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"}) -> (tensor<8x4xf32> {jax.result_info = "result", mhlo.sharding = "{devices=[2,2]<=[4]}"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
// -----

module @jit_all_to_all_split_2_partitions attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1x2x6xf32>) -> tensor<2x6xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<1x2x6xf32>) -> tensor<2x6xf32>
    %1 = "stablehlo.all_to_all"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<2x6xf32>) -> tensor<2x6xf32>
    return %1 : tensor<2x6xf32>
  }
}
// -----

module @jit_halo_exchange_4_partitions attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5xf32>) -> tensor<3x5xf32> {
    %0 = stablehlo.slice %arg0 [2:3, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
    %1 = "stablehlo.collective_permute"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<1x5xf32>) -> tensor<1x5xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x5xf32>) -> tensor<3x5xf32>
    %3 = stablehlo.add %arg0, %2 : tensor<3x5xf32>
    %4 = stablehlo.slice %arg0 [0:1, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
    %5 = "stablehlo.collective_permute"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[1, 0], [2, 1], [3, 2], [0, 3]]> : tensor<4x2xi64>}> : (tensor<1x5xf32>) -> tensor<1x5xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<1x5xf32>) -> tensor<3x5xf32>
    %7 = stablehlo.subtract %3, %6 : tensor<3x5xf32>
    return %7 : tensor<3x5xf32>
  }
}
// -----

module @jit_loop_with_sum_4_replicas attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%arg0: tensor<1x6xf32>) -> tensor<1x6xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0:3 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %c, %iterArg_2 = %arg0) : tensor<i32>, tensor<i32>, tensor<1x6xf32>
    cond {
      %c_3 = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1:2 = func.call @closed_call(%iterArg_1, %iterArg_2) : (tensor<i32>, tensor<1x6xf32>) -> (tensor<i32>, tensor<1x6xf32>)
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %iterArg, %c_3 : tensor<i32>
      stablehlo.return %2, %1#0, %1#1 : tensor<i32>, tensor<i32>, tensor<1x6xf32>
    }
    return %0#2 : tensor<1x6xf32>
  }
  func.func private @closed_call(%arg0: tensor<i32>, %arg1: tensor<1x6xf32>) -> (tensor<i32>, tensor<1x6xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg0, %c : tensor<i32>
    %1 = "stablehlo.all_reduce"(%arg1) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %6 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }) : (tensor<1x6xf32>) -> tensor<1x6xf32>
    %cst = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x6xf32>
    %3 = stablehlo.divide %1, %2 : tensor<1x6xf32>
    %4 = stablehlo.add %arg1, %3 : tensor<1x6xf32>
    %5 = stablehlo.tanh %4 : tensor<1x6xf32>
    return %0, %5 : tensor<i32>, tensor<1x6xf32>
  }
}
// -----

#loc1 = loc("args[0]")
#loc9 = loc("shard_map")
#loc11 = loc("psum")
#loc23 = loc("shard_map:"(#loc9))
#loc25 = loc("psum:"(#loc11))
module @jit_grid_sum_shardy attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}, {name = "b", size = 2 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>} loc("args[0]")) -> (tensor<4x6xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a", "b"} (%arg1: tensor<2x3xf32> loc("shard_map:"(#loc9))) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("psum:"(#loc11)), %arg3: tensor<f32> loc("psum:"(#loc11))):
        %11 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc46)
        stablehlo.return %11 : tensor<f32> loc(#loc37)
      }) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc(#loc37)
      %2 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("psum:"(#loc11)), %arg3: tensor<f32> loc("psum:"(#loc11))):
        %11 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc47)
        stablehlo.return %11 : tensor<f32> loc(#loc39)
      }) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc(#loc39)
      %c = stablehlo.constant dense<1> : tensor<ui32> loc(#loc41)
      %c_0 = stablehlo.constant dense<2> : tensor<ui32> loc(#loc41)
      %3 = stablehlo.partition_id : tensor<ui32> loc(#loc41)
      %4 = stablehlo.divide %3, %c : tensor<ui32> loc(#loc41)
      %5 = stablehlo.remainder %4, %c_0 : tensor<ui32> loc(#loc41)
      %6 = stablehlo.convert %5 : (tensor<ui32>) -> tensor<i32> loc(#loc41)
      %7 = stablehlo.convert %6 : (tensor<i32>) -> tensor<f32> loc(#loc42)
      %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<2x3xf32> loc(#loc43)
      %9 = stablehlo.multiply %2, %8 : tensor<2x3xf32> loc(#loc43)
      %10 = stablehlo.add %1, %9 : tensor<2x3xf32> loc(#loc44)
      sdy.return %10 : tensor<2x3xf32> loc(#loc23)
    } : (tensor<4x6xf32>) -> tensor<4x6xf32> loc(#loc52)
    return %0 : tensor<4x6xf32> loc(#loc51)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("harness.py":412:15 to :24)
#loc3 = loc("harness.py":585:44 to :59)
#loc4 = loc("harness.py":181:48 to :69)
#loc5 = loc("harness.py":169:8 to 171:88)
#loc6 = loc("suite_multi_device.py":52:8 to :160)
#loc7 = loc("generate.py":22:8 to :61)
#loc8 = loc("generate.py":27:4 to :10)
#loc10 = loc("suite_multi_device.py":52:47 to :63)
#loc12 = loc("suite_multi_device.py":52:66 to :82)
#loc13 = loc("suite_multi_device.py":52:85 to :104)
#loc14 = loc("suite_multi_device.py":52:66 to :104)
#loc15 = loc("suite_multi_device.py":52:47 to :104)
#loc16 = loc("named.<locals>.run"(#loc2))
#loc17 = loc("make_shards"(#loc3))
#loc18 = loc("Suite._put"(#loc4))
#loc19 = loc("Suite.shards"(#loc5))
#loc20 = loc("build"(#loc6))
#loc21 = loc("main"(#loc7))
#loc22 = loc("<module>"(#loc8))
#loc24 = loc("build.<locals>.<lambda>"(#loc10))
#loc26 = loc("build.<locals>.<lambda>"(#loc12))
#loc27 = loc("build.<locals>.<lambda>"(#loc13))
#loc28 = loc("build.<locals>.<lambda>"(#loc14))
#loc29 = loc("build.<locals>.<lambda>"(#loc15))
#loc30 = loc(callsite(#loc21 at #loc22))
#loc31 = loc(callsite(#loc24 at #loc16))
#loc32 = loc(callsite(#loc26 at #loc16))
#loc33 = loc(callsite(#loc27 at #loc16))
#loc34 = loc(callsite(#loc28 at #loc16))
#loc35 = loc(callsite(#loc29 at #loc16))
#loc36 = loc(callsite(#loc20 at #loc30))
#loc37 = loc("psum"(#loc31))
#loc38 = loc(callsite(#loc31 at #loc31))
#loc39 = loc("psum"(#loc32))
#loc40 = loc(callsite(#loc32 at #loc32))
#loc41 = loc("axis_index"(#loc33))
#loc42 = loc("convert_element_type"(#loc34))
#loc43 = loc("mul"(#loc34))
#loc44 = loc("add"(#loc35))
#loc45 = loc(callsite(#loc19 at #loc36))
#loc46 = loc("add"(#loc38))
#loc47 = loc("add"(#loc40))
#loc48 = loc(callsite(#loc18 at #loc45))
#loc49 = loc(callsite(#loc17 at #loc48))
#loc50 = loc(callsite(#loc16 at #loc49))
#loc51 = loc("jit(grid_sum_shardy)"(#loc49))
#loc52 = loc("jit(grid_sum_shardy)/shard_map"(#loc50))
// -----

module @jit_psum_scatter_axis1_2_partitions attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x6xf32>) -> tensor<2x3xf32> {
    %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<2x6xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
