module @m {
  func.func @main(%a: tensor<4x8xf32>) -> (tensor<8x8xf32>) {
    %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
      %1 = "stablehlo.all_gather"(%arg) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>) -> (tensor<8x8xf32>)
      stablehlo.return %1 : tensor<8x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<8x8xf32>>
    %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<8x8xf32>>) -> tensor<8x8xf32>
    return %2 : tensor<8x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
    %1 = "stablehlo.all_reduce"(%arg) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
      stablehlo.return %1 : tensor<4x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>>
    %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4x8xf32>>) -> tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
      %1 = "stablehlo.all_to_all"(%arg) {split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      stablehlo.return %1 : tensor<4x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>>
    %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4x8xf32>>) -> tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
      %1 = "stablehlo.collective_permute"(%arg) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      stablehlo.return %1 : tensor<4x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>>
    %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4x8xf32>>) -> tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>) -> (tensor<2x8xf32>) {
    %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
    %1 = "stablehlo.reduce_scatter"(%arg) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 0 : i64} : (tensor<4x8xf32>) -> (tensor<2x8xf32>)
      stablehlo.return %1 : tensor<2x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<2x8xf32>>
    %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2x8xf32>>) -> tensor<2x8xf32>
    return %2 : tensor<2x8xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %f = "stablehlo.async_start"(%a, %b) ({
     ^bb0(%c: tensor<4x8xf32>, %d: tensor<4x8xf32>):
    %0:2 = "stablehlo.all_reduce"(%c, %d) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
     stablehlo.return %0#0, %0#1: tensor<4x8xf32>, tensor<4x8xf32>
    }) : (tensor<4x8xf32>, tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>, tensor<4x8xf32>>
    %r:2 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4x8xf32>, tensor<4x8xf32>>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    return %r#0, %r#1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}
// -----

// A future that is a result of `main`: its value is.
module @m {
  func.func @main(%a: tensor<4x8xf32>) -> !stablehlo.future<tensor<8x8xf32>> {
    %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
      %1 = "stablehlo.all_gather"(%arg) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<4x8xf32>) -> (tensor<8x8xf32>)
      stablehlo.return %1 : tensor<8x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<8x8xf32>>
    return %0 : !stablehlo.future<tensor<8x8xf32>>
  }
}
// -----

// Futures of all four kinds that nothing uses.
module @m {
  func.func @main(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
      %1 = "stablehlo.all_gather"(%arg) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x8xf32>) -> (tensor<8x8xf32>)
      stablehlo.return %1 : tensor<8x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<8x8xf32>>
    %2 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
      %1 = "stablehlo.collective_permute"(%arg) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      stablehlo.return %1 : tensor<4x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>>
    %3 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
      %1 = "stablehlo.all_reduce"(%arg) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.maximum %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
      stablehlo.return %1 : tensor<4x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>>
    %4 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
      %1 = "stablehlo.all_to_all"(%arg) {split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      stablehlo.return %1 : tensor<4x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>>
    return %a : tensor<4x8xf32>
  }
}
// -----

// A future that a function returns and its caller waits for, twice.
module @m {
  func.func private @begin(%a: tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>> {
    %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%arg: tensor<4x8xf32>):
      %1 = "stablehlo.collective_permute"(%arg) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      stablehlo.return %1 : tensor<4x8xf32>
    }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>>
    return %0 : !stablehlo.future<tensor<4x8xf32>>
  }
  func.func @main(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %0 = func.call @begin(%a) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4x8xf32>>
    %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4x8xf32>>) -> tensor<4x8xf32>
    %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4x8xf32>>) -> tensor<4x8xf32>
    return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}
