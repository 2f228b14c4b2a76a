//! Tests of programs that call functions of the caller's language: thread, order and errors of the calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use xla_hlo::ops::CustomCallContext;
use xla_hlo::{Error, Literal, Result, Scalar};

use crate::client::{ONE_DEVICE, buffer, client, compile, create, execute, fetch_f32, finish, handles, of};
use crate::programs::execute_keeping;
use crate::table::Args;

/// Target of calls to Python, as JAX names it; the tests' registry has [`call`] for it.
pub const TARGET: &str = "xla_ffi_python_cpu_callback";

const PROGRAM: &str = r#"module @calls {
func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {api_version = 4 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
}"#;

/// Program that takes longer than a call that submits it.
const LONG: &str = r#"module @long {
func.func public @main(%x: tensor<300x300xf32>) -> tensor<300x300xf32> {
  %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<300x300xf32>, tensor<300x300xf32>) -> tensor<300x300xf32>
  return %y : tensor<300x300xf32>
}
}"#;

/// Handler that doubles its operand, and rejects negative ones.
pub fn call(_: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let operand = &operands[0];
    let Scalar::Float(first) = operand.get(0) else { return Err(Error::internal("an operand of floats")) };
    if first < 0.0 {
        return Err(Error::invalid_argument("negative"));
    }
    CALLS.with(|calls| calls.fetch_add(1, Ordering::Relaxed));
    Literal::from_fn(operand.array_shape(), |i| match operand.get(i) {
        Scalar::Float(value) => Scalar::Float(2.0 * value),
        other => other,
    })
}

thread_local! {
    /// Number of calls that this thread has made.
    static CALLS: AtomicUsize = const { AtomicUsize::new(0) };
}

fn calls_of_this_thread() -> usize {
    CALLS.with(|calls| calls.swap(0, Ordering::Relaxed))
}

#[test]
fn calls_are_made_and_their_errors_returned_before_the_call_returns() {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let program = compile(client, "mlir", PROGRAM.as_bytes(), ONE_DEVICE).expect("a program");
    let [x, negative] = [1.0, -1.0].map(|value| buffer(client, device, &[2], &[value; 2]));
    calls_of_this_thread();
    let y = execute(program, &[x], 1).expect("a result")[0];
    assert_eq!(calls_of_this_thread(), 1);
    assert_eq!(fetch_f32(y).expect("values"), [2.0; 2]);
    let failure = execute_keeping(program, negative, &[]).expect_err("the call's error");
    assert!(failure.message.contains("negative"), "{}", failure.message);
    // Errors of arguments are errors of the results.
    let args = Args::of("Client_CreateErrorBuffer").put(16, client).put_i32(24, 5).put_bytes(32, b"lost");
    let memory = handles("Client_AddressableMemories", client)[0];
    let args = args.put_words(48, &[2]).put_i32(64, crate::client::F32).put(80, memory);
    let lost = args.call("Client_CreateErrorBuffer").expect("a buffer").get(88);
    let result = execute_keeping(program, lost, &[]).expect("a result");
    assert!(fetch_f32(result).expect_err("the argument's error").message.contains("lost"));
    of("Client_Destroy", client).expect("fine");
}

/// Whether a result is ready when the call returns, on a client with option `asynchronous`.
fn is_ready_at_return(asynchronous: bool) -> bool {
    let client = crate::client::create_with_flag("asynchronous", asynchronous).expect("a client");
    let device = handles("Client_Devices", client)[0];
    let program = compile(client, "mlir", LONG.as_bytes(), ONE_DEVICE).expect("a program");
    let x = buffer(client, device, &[300, 300], &vec![1.0; 90_000]);
    let y = execute_keeping(program, x, &[]).expect("a result");
    let event = of("Buffer_ReadyEvent", y).expect("an event").get(24);
    let is_ready = of("Event_IsReady", event).expect("fine").get_flag(24);
    finish(event).expect("fine");
    of("Client_Destroy", client).expect("fine");
    is_ready
}

#[test]
fn a_client_without_asynchronous_dispatch_has_results_when_a_call_returns() {
    assert!(is_ready_at_return(false));
    assert!(!is_ready_at_return(true));
    assert!(create(&[("asynchronous", 1)]).expect_err("no flag").message.contains("must be true or false"));
}
