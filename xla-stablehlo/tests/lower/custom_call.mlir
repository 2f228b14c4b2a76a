module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.custom_call @foo(%a) {api_version = 4 : i32, backend_config = {n = 1 : i64, m = -5 : i32, b = true, u8 = 3 : ui8, s = "x\"y\n\t\\é", f = 1.5 : f32, g = 1.0e-10 : f64, inf = 0x7F800000 : f32, h = 1.5 : bf16, arr = array<i64: 1, 2>, af = array<f32: 1.0, 2.5>, ab = array<i1: true, false>, ae = array<i64>, d = {z = true}, l = [1, "a"], u, "quoted name" = 1 : i64, ty = f32, dd = dense<[1, 2]> : tensor<2xi32>, sym = @foo, e = {}}} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.custom_call @foo(%a) {mhlo.backend_config = {n = 1 : i64}, mhlo.frontend_attributes = {a = "b"}, mhlo.sharding = "{replicated}", has_side_effect = true, backend_config = "text", api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.custom_call @foo(%a) {has_side_effect = true, backend_config = "te\"xt", api_version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.custom_call @foo(%0) {api_version = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.custom_call @Pin(%a) : (tensor<4xf32>) -> memref<4xf32>
    %1 = stablehlo.custom_call @foo(%0) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (memref<4xf32>) -> memref<4xf32>
    %2 = stablehlo.custom_call @Unpin(%1) : (memref<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.custom_call @CreateBuffer() : () -> memref<4xf32>
    %2 = stablehlo.custom_call @Unpin(%0) : (memref<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
    %0:2 = stablehlo.custom_call @foo(%a) {operand_layouts=[dense<[0,1]> : tensor<2xindex>], result_layouts=[dense<[0,1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], mhlo.sharding = "{{replicated}, {replicated}}"} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
    return %0#0, %0#1 : tensor<4x4xf32>, tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.custom_call @foo(%a) {api_version = 4 : i32, backend_config = {a1 = 0.123456789 : f64, a2=16777217.0 : f64, a3 = 1.2345678e+20 : f64, a4 = -1234.5678901 : f64, a5=0.1:f32, a6 = -0.0:f32, a7 = 0x7FC00000 : f32, a8= 0x0:f8E4M3FN, a9 = 1.23456789e-20 : f64, b1=0.33:f32, b2=0.333:f16, b3 = 123456792.0 : f32, b4=0.001234567891:f64, b5=1.1:f64, b6=dense<[(1.0,2.0)]>:tensor<1xcomplex<f32>>, c3=[], c4=dense<[[1,2],[3,4]]>:tensor<2x2xi8>, c5=@a::@b, c6=f8E4M3FN, c7=0.0001234567891:f64, c8=dense<[true,false]>:tensor<2xi1>, c9=@"a b"}} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<64x256xf32>) -> tensor<64x256xf32> {
    %0 = "stablehlo.custom_call"(%a) {call_target_name = "foo", operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>], result_tilings = [[dense<[16, 128]> : tensor<2xindex>, dense<[2, 1]> : tensor<2xindex>]]} : (tensor<64x256xf32>) -> tensor<64x256xf32>
    return %0 : tensor<64x256xf32>
  }
}
// -----

module @without_results {
  sdy.mesh @one = <[], device_ids=[0]>
  func.func @main(%a: tensor<4xf32>) {
    stablehlo.custom_call @print(%a) {has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}, sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<4xf32>) -> ()
    return
  }
}
// -----

module @approximate_selection {
  func.func @greater(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func @main(%a: tensor<4x1000x3xf32>) -> (tensor<4x10x3xf32>, tensor<4x10x3xi32>) {
    %0 = stablehlo.iota dim = 1 : tensor<4x1000x3xi32>
    %1 = stablehlo.constant dense<-1> : tensor<i32>
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3:2 = stablehlo.custom_call @ApproxTopK(%a, %0, %2, %1) {called_computations = [@greater], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.9 : f32, reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64, top_k = 10 : i64}} : (tensor<4x1000x3xf32>, tensor<4x1000x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x10x3xf32>, tensor<4x10x3xi32>)
    return %3#0, %3#1 : tensor<4x10x3xf32>, tensor<4x10x3xi32>
  }
}
// -----

module @approximate_selection_without_a_comparator {
  func.func @main(%a: tensor<4xf32>, %z: tensor<f32>) -> tensor<2xf32> {
    %0 = stablehlo.custom_call @ApproxTopK(%a, %z) {mhlo.backend_config = {reduction_dim = 0 : i64}} : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// -----

module @wishes_for_an_order {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %a : tensor<4xf32>
    %1 = stablehlo.cosine %a : tensor<4xf32>
    stablehlo.custom_call @control_dep(%1, %0) {has_side_effect = true, mhlo.backend_config = {}} : (tensor<4xf32>, tensor<4xf32>) -> ()
    %2 = stablehlo.add %0, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
// -----

// Configurations of bytes that are no text, in a string and in a dictionary.
module @m {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.custom_call @packed(%a) {backend_config = "\02\C0\FEb{\22"} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.custom_call @typed(%0) {api_version = 4 : i32, backend_config = {key = "\E9\00", size = 3 : i64}} : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}
// -----

// Bytes that are no text where text is needed: the target, a frontend attribute.
module @m {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.custom_call"(%a) {call_target_name = "f\FF"} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----

module @m {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %a {mhlo.frontend_attributes = {x = "\80"}} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----

// The configuration of an infeed is text.
module @m {
  func.func @main(%t: !stablehlo.token) -> tensor<i1> {
    %0:2 = "stablehlo.infeed"(%t) {infeed_config = "ab\C0"} : (!stablehlo.token) -> (tensor<i1>, !stablehlo.token)
    return %0#0 : tensor<i1>
  }
}
