module @m {
  func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<8x4xf32> {
    %0 = "stablehlo.all_to_all"(%a) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %0:2 = "stablehlo.all_to_all"(%a, %b) {split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    return %0#0, %0#1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>) {
    %0:2 = "stablehlo.all_reduce"(%a, %b) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
    return %0#0, %0#1 : tensor<4x8xf32>, tensor<4x8xi32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %0:2 = "stablehlo.all_gather"(%a, %b) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
    return %0#0, %0#1 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %0 = "stablehlo.cross-replica-sum"(%a) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
    return %0 : tensor<4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %0 = "stablehlo.collective_broadcast"(%a) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
    return %0 : tensor<4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %0:2 = "stablehlo.all_reduce"(%a, %b) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1, -1], [2, 3, 4]]> : tensor<2x3xi64>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    return %0#0, %0#1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>, %root: tensor<i32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
    %0 = "stablehlo.collective_broadcast"(%a, %root) {has_dynamic_root = true, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<4x8xf32>, tensor<i32>) -> tensor<4x8xf32>
    %1 = "stablehlo.collective_reduce"(%a, %root) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {has_dynamic_root = true, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>, tensor<i32>) -> tensor<4x8xf32>
    %2 = "stablehlo.collective_reduce"(%a) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {has_dynamic_root = false, use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 2, type = 0>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0, %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<2x4x8xi32>) -> (tensor<2x8x4xi32>, tensor<4x4x4xi32>) {
    %0 = "stablehlo.all_to_all"(%a) {split_dimension = 2 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x4x8xi32>) -> tensor<2x8x4xi32>
    %1 = "stablehlo.all_to_all"(%a) {split_dimension = 2 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x4x8xi32>) -> tensor<4x4x4xi32>
    return %0, %1 : tensor<2x8x4xi32>, tensor<4x4x4xi32>
  }
}
// -----

module @mesh_axes {
  sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
    %0 = "stablehlo.all_reduce"(%a) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>, #stablehlo.axis_ref<name = "x">]>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 4>]>, axes = [#stablehlo.axis_ref<name = "x">]>} : (tensor<4x8xf32>) -> tensor<8x8xf32>
    return %0, %1 : tensor<4x8xf32>, tensor<8x8xf32>
  }
}
// -----

module @mesh_axes_without_names_of_attributes {
  func.func @main(%a: tensor<4x8xf32>) -> tensor<8x8xf32> {
    %1 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = "x", size = 2>, <name = "y", size = 4>]>, axes = [<name = "x">]>} : (tensor<4x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}
// -----

module @no_such_mesh {
  func.func @main(%a: tensor<4x8xf32>) -> tensor<8x8xf32> {
    %1 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>} : (tensor<4x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}
// -----

module @parts_do_not_fit {
  func.func @main(%a: tensor<4x7xf32>) -> tensor<8x4xf32> {
    %0 = "stablehlo.all_to_all"(%a) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x7xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
