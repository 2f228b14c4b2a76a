module @m {
  func.func @main(%t: !stablehlo.token) -> (tensor<3xf32>, tensor<i32>, !stablehlo.token) {
    %0:3 = "stablehlo.infeed"(%t) {infeed_config = "foo", layout = [[0], []]} : (!stablehlo.token) -> (tensor<3xf32>, tensor<i32>, !stablehlo.token)
    return %0#0, %0#1, %0#2 : tensor<3xf32>, tensor<i32>, !stablehlo.token
  }
}
// -----

module @m {
  func.func @main(%a: tensor<3xf32>, %b: tensor<i32>, %t: !stablehlo.token) -> (!stablehlo.token) {
    %0 = "stablehlo.outfeed"(%a, %b, %t) {outfeed_config = "foo"} : (tensor<3xf32>, tensor<i32>, !stablehlo.token) -> (!stablehlo.token)
    %1 = "stablehlo.outfeed"(%a, %0) {outfeed_config = ""} : (tensor<3xf32>, !stablehlo.token) -> (!stablehlo.token)
    return %1 : !stablehlo.token
  }
}
// -----

module @m {
  func.func @main(%a: tensor<3xf32>, %b: tensor<i32>, %t: !stablehlo.token) -> (!stablehlo.token) {
    %0 = "stablehlo.send"(%a, %b, %t) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true} : (tensor<3xf32>, tensor<i32>, !stablehlo.token) -> (!stablehlo.token)
    %1 = "stablehlo.send"(%a, %0) {channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0,1],[1,2]]> : tensor<2x2xi64>} : (tensor<3xf32>, !stablehlo.token) -> (!stablehlo.token)
    %2:3 = "stablehlo.recv"(%1) {channel_handle = #stablehlo.channel_handle<handle = 7, type = 3>, is_host_transfer = true} : (!stablehlo.token) -> (tensor<3xf32>, tensor<i32>, !stablehlo.token)
    %3:2 = "stablehlo.recv"(%2#2) {channel_handle = #stablehlo.channel_handle<handle = 8, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0,1],[1,2]]> : tensor<2x2xi64>} : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
    %4 = "stablehlo.send"(%3#1) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true} : (!stablehlo.token) -> (!stablehlo.token)
    %5 = "stablehlo.recv"(%4) {channel_handle = #stablehlo.channel_handle<handle = 7, type = 3>, is_host_transfer = true} : (!stablehlo.token) -> (!stablehlo.token)
    return %5 : !stablehlo.token
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>) -> (!stablehlo.token) {
    %0 = stablehlo.create_token : !stablehlo.token
    %1 = stablehlo.after_all %0, %0 : !stablehlo.token
    return %1 : !stablehlo.token
  }
}
// -----

module @m {
  func.func @main(%t: !stablehlo.token) -> (tensor<3x4xf32>, !stablehlo.token) {
    %0:2 = "stablehlo.infeed"(%t) {infeed_config = "foo", layout = [[0, 1]]} : (!stablehlo.token) -> (tensor<3x4xf32>, !stablehlo.token)
    %1 = "stablehlo.infeed"(%0#1) {infeed_config = ""} : (!stablehlo.token) -> (!stablehlo.token)
    %2 = "stablehlo.outfeed"(%1) : (!stablehlo.token) -> (!stablehlo.token)
    return %0#0, %2 : tensor<3x4xf32>, !stablehlo.token
  }
}
