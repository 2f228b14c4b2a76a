//! Arguments, limits and threads of the devices.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use xla_hlo::eval::{Evaluator, grid};
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
