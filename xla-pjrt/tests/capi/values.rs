//! Tests of parameters and results other than arrays on the device: tokens, and arrays in host memory.

use crate::client::{
    ONE_DEVICE, buffer, buffer_of, client, compile, executable_of, execute, fetch, fetch_f32, handles, of,
};
use crate::table::{bytes, read};

const TOKEN: i32 = 23;

const THROUGH: &str = "module @through {
func.func public @main(%arg0: !stablehlo.token, %arg1: tensor<2xf32>) -> (!stablehlo.token, tensor<2xf32>) {
  %0 = stablehlo.negate %arg1 : tensor<2xf32>
  return %arg0, %0 : !stablehlo.token, tensor<2xf32>
}
}";

const IN_HOST_MEMORY: &str = "module @kinds {
func.func public @main(%arg0: tensor<2xf32> {mhlo.memory_kind = \"unpinned_host\"})
    -> (tensor<2xf32>, tensor<2xf32> {mhlo.memory_kind = \"pinned_host\"}) {
  %0 = stablehlo.negate %arg0 : tensor<2xf32>
  return %0, %0 : tensor<2xf32>, tensor<2xf32>
}
}";

#[test]
fn tokens_come_in_and_out() {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let program = compile(client, "mlir", THROUGH.as_bytes(), ONE_DEVICE).expect("a program");
    let executable = executable_of(program);
    assert_eq!(of("Executable_NumOutputs", executable).expect("fine").get(24), 2);
    let types = of("Executable_OutputElementTypes", executable).expect("fine");
    assert_eq!(read::<[i32; 2]>(types.get(24)), [TOKEN, 11]);
    // The first token is an arbitrary array.
    let mut token = buffer_of(client, device, 1, &[0], &[], &[], 0).expect("a buffer");
    let mut x = buffer(client, device, &[2], &[1.0, 2.0]);
    for _ in 0..3 {
        let results = execute(program, &[token, x], 2).expect("results");
        (token, x) = (results[0], results[1]);
        assert_eq!(of("Buffer_ElementType", token).expect("fine").get_i32(24), TOKEN);
        assert_eq!(of("Buffer_Dimensions", token).expect("fine").get(32), 0);
    }
    assert_eq!(fetch_f32(x).expect("values"), [-1.0, -2.0]);
    assert_eq!(fetch(token).expect_err("refused").message, "a token has no data for the host");
    of("Buffer_Delete", token).expect("fine");
    assert_eq!(execute(program, &[token, x], 2).expect_err("gone").message, "Buffer has been deleted or donated.");
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn results_are_in_the_memory_that_the_program_states() {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let program = compile(client, "mlir", IN_HOST_MEMORY.as_bytes(), ONE_DEVICE).expect("a program");
    let executable = executable_of(program);
    let told = |function: &str| {
        let kinds = of(function, executable).expect("kinds");
        let (starts, sizes): (usize, usize) = (kinds.get(32), kinds.get(40));
        let kind = |i: usize| String::from_utf8(bytes(read(starts + 8 * i), read(sizes + 8 * i))).expect("a text");
        (0..kinds.get(24)).map(kind).collect::<Vec<_>>()
    };
    assert_eq!(told("Executable_OutputMemoryKinds"), ["device", "pinned_host"]);
    assert_eq!(told("Executable_ParameterMemoryKinds"), ["unpinned_host"]);
    let x = buffer(client, device, &[2], &[1.0, 2.0]);
    let kind = |result: &usize| {
        let memory = of("Buffer_Memory", *result).expect("a memory").get(24);
        of("Memory_Kind", memory).expect("a kind").get_text(24)
    };
    let results = execute(program, &[x], 2).expect("results");
    assert_eq!(results.iter().map(kind).collect::<Vec<_>>(), ["device", "pinned_host"]);
    assert_eq!(fetch_f32(results[1]).expect("values"), [-1.0, -2.0]);
    of("Client_Destroy", client).expect("fine");
}
