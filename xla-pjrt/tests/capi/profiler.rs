//! Tests of the profiler as callers use it: created, started, stopped, read twice, destroyed.

use crate::client::{ONE_DEVICE, buffer, client, compile, execute, handles, of};
use crate::table::{Args, Failure, bytes, call_at, extension, failure, read};

const PROGRAM: &str = "module @profiled {
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.add %x, %x : tensor<3xf32>
  return %y : tensor<3xf32>
}
}";

/// Calls function `number` of the profiler's table.
fn call(number: usize, args: &mut Args) -> Result<(), Failure> {
    let table: usize = read(extension(1) + 24);
    assert_eq!((read::<usize>(extension(1)), read::<usize>(table)), (40, 80));
    failure(call_at(table + 16 + 8 * number, args.address())).map_or(Ok(()), Err)
}

/// Calls a function of a profiler; jaxlib passes an arbitrary number as the structure's size.
fn of_profiler(number: usize, profiler: usize) -> Result<(), Failure> {
    call(number, &mut Args::new(16).put(0, 1).put(8, profiler))
}

// Indices in the table; three functions of errors come first.
const CREATE: usize = 3;
const DESTROY: usize = 4;
const START: usize = 5;
const STOP: usize = 6;
const COLLECT: usize = 7;

#[test]
fn compilations_and_runs_between_start_and_stop_are_in_the_profile() {
    let mut args = Args::new(32);
    call(CREATE, &mut args).expect("a profiler");
    let profiler = args.get(24);
    let early = of_profiler(STOP, profiler).expect_err("not started");
    assert_eq!((early.code, early.message.contains("start it first")), (9, true), "{}", early.message);
    of_profiler(START, profiler).expect("fine");
    assert_eq!(of_profiler(START, profiler).expect_err("twice").code, 9);
    let client = client(1);
    let program = compile(client, "mlir", PROGRAM.as_bytes(), ONE_DEVICE).expect("a program");
    let x = buffer(client, handles("Client_Devices", client)[0], &[3], &[1.0, 2.0, 3.0]);
    execute(program, &[x], 1).expect("a result");
    assert_eq!(call(COLLECT, &mut Args::new(32).put(8, profiler)).expect_err("running").code, 9);
    of_profiler(STOP, profiler).expect("fine");
    // A program that runs later is not in the profile.
    let later = PROGRAM.replace("@profiled", "@later");
    let program = compile(client, "mlir", later.as_bytes(), ONE_DEVICE).expect("a program");
    execute(program, &[x], 1).expect("a result");
    let mut size = Args::new(32).put(8, profiler);
    call(COLLECT, &mut size).expect("the size");
    // Two kinds of callers: those that read the profiler's own buffer, and those that provide one.
    let lent = bytes(size.get(16), size.get(24));
    call(COLLECT, &mut size).expect("the profiler's own buffer");
    let mut data = vec![0_u8; size.get(24)];
    let place = data.as_mut_ptr().expose_provenance();
    let short = call(COLLECT, &mut Args::new(32).put(8, profiler).put(16, place).put(24, data.len() - 1));
    assert_eq!(short.expect_err("too short").code, 3);
    call(COLLECT, &mut Args::new(32).put(8, profiler).put(16, place).put(24, data.len())).expect("the profile");
    let data = bytes(place, data.len());
    assert_eq!(data, lent);
    let has = |text: &str| data.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("/device:CUSTOM:xlars") && has("execute profiled") && has("compile profiled"));
    assert!(!has("execute later"));
    of_profiler(DESTROY, profiler).expect("fine");
    of("Client_Destroy", client).expect("fine");
}
