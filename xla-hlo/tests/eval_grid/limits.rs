//! Arguments, limits and threads of the devices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use xla_hlo::eval::{Evaluator, grid};
use xla_hlo::ops::{CustomCallContext, CustomCallRegistry};
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Error, Literal, Module};

use crate::support::argument;

const SUM: &str = "HloModule m, replica_count=2
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY main { x = f32[2] parameter(0) ROOT r = f32[2] all-reduce(x), to_apply=add }
";

fn module() -> Module {
    parse_module(SUM).unwrap()
}

fn arguments(dims: &[[usize; 1]]) -> Vec<Vec<Literal>> {
    let of_device =
        |(device, dims): (usize, &[usize; 1])| vec![argument(0, device, &ArrayShape::new(ElementType::F32, *dims))];
    dims.iter().enumerate().map(of_device).collect()
}

#[test]
fn arguments_of_each_device_are_checked() {
    let message = |dims: &[[usize; 1]]| grid::evaluate(&module(), arguments(dims)).unwrap_err().to_string();
    assert_eq!(message(&[[2]]), "module m runs on 2 devices, arguments for 1 were given");
    assert_eq!(
        message(&[[2], [3]]),
        "device 1 (replica 1, partition 0): argument 0 (x) of module m must be f32[2], it is f32[3]"
    );
}

#[test]
fn a_limit_of_steps_stops_all_devices() {
    let module = module();
    let run = |steps| {
        let evaluator = |device| Evaluator::new(&module).with_step_limit(if device == 1 { steps } else { 100 });
        grid::evaluate_with(&module, arguments(&[[2], [2]]), evaluator)
    };
    assert!(run(2).is_ok());
    let error = run(1).unwrap_err();
    assert!(matches!(error, Error::ResourceExhausted(_)), "{error}");
    assert!(error.to_string().starts_with("device 1 (replica 1, partition 0): evaluating r of computation main"));
}

#[test]
fn cancellation_stops_all_devices() {
    let module = module();
    let cancelled = Arc::new(AtomicBool::new(true));
    let evaluator = |_| Evaluator::new(&module).with_cancellation(cancelled.clone());
    let error = grid::evaluate_with(&module, arguments(&[[2], [2]]), evaluator).unwrap_err();
    assert!(matches!(error, Error::Cancelled(_)), "{error}");
}

/// Device 0 waits at the all-reduce when device 1 cancels the evaluation or panics.
const CALL: &str = "HloModule m, replica_count=2
first { ROOT x = f32[2] parameter(0) }
second { x = f32[2] parameter(0) ROOT r = f32[2] custom-call(x), custom_call_target=\"act\" }
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[2] parameter(0)
  id = u32[] replica-id()
  zero = u32[] constant(0)
  is_second = pred[] compare(id, zero), direction=NE
  y = f32[2] conditional(is_second, x, x), true_computation=second, false_computation=first
  ROOT r = f32[2] all-reduce(y), to_apply=sum
}
";

/// Evaluates [`CALL`]; device 1 calls `act`.
fn call(act: impl Fn() + Send + Sync + 'static, cancelled: &Arc<AtomicBool>) -> Result<Vec<Literal>, Error> {
    let module = parse_module(CALL).unwrap();
    let registry = CustomCallRegistry::new();
    let handler = move |_: &CustomCallContext<'_>, operands: Vec<Literal>| {
        act();
        Ok(operands[0].clone())
    };
    registry.register("act", Arc::new(handler));
    let evaluator = |_| Evaluator::new(&module).with_custom_calls(&registry).with_cancellation(cancelled.clone());
    grid::evaluate_with(&module, arguments(&[[2], [2]]), evaluator)
}

#[test]
fn cancellation_reaches_a_device_that_waits() {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let error = call(move || flag.store(true, Ordering::Relaxed), &cancelled).unwrap_err();
    assert!(matches!(error, Error::Cancelled(_)), "{error}");
}

#[test]
fn a_panic_of_a_device_continues() {
    let run = || call(|| panic!("of device 1"), &Arc::default());
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"of device 1"));
}

#[test]
fn threads_of_a_pool_evaluate_grids() {
    let run = |_| grid::evaluate(&module(), arguments(&[[2], [2]])).unwrap();
    let found: Vec<_> = (0..16).into_par_iter().map(run).collect();
    assert!(found.iter().all(|results| *results == found[0]));
}
