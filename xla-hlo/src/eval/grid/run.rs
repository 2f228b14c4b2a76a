//! Entry points of the evaluator over a grid.

use super::super::{Evaluator, available_threads, check_arguments};
use super::devices::Grid;
use super::lockstep::Lockstep;
use crate::{Error, Literal, Module, Result, ResultExt};

/// Runs the entry computation of a module on all devices that its header declares. `arguments` holds one list for each
/// device: one literal for each parameter, with the parameter's shape (layouts are ignored). Returns the result of each
/// device. Each device has its own random state.
///
/// An error names the device, and the first argument that does not fit or the instruction that failed.
pub fn evaluate(module: &Module, arguments: Vec<Vec<Literal>>) -> Result<Vec<Literal>> {
    let grid = Grid::of(module)?;
    for (device, arguments) in arguments.iter().enumerate() {
        check_arguments(module, arguments).context(|| grid.describe(device))?;
    }
    evaluate_with(module, arguments, |_| Evaluator::new(module).with_threads(available_threads()))
}

/// Runs the entry computation like [`evaluate`], with arguments of the parameters' shapes, by the evaluator that
/// `evaluator` creates for each device: limits, handlers of custom calls and random states are its own.
pub fn evaluate_with<'m>(
    module: &'m Module,
    arguments: Vec<Vec<Literal>>,
    evaluator: impl Fn(usize) -> Evaluator<'m>,
) -> Result<Vec<Literal>> {
    let grid = Grid::of(module)?;
    if arguments.len() != grid.device_count() {
        return Err(Error::invalid_argument(format!(
            "module {} runs on {} devices, arguments for {} were given",
            module.name(),
            grid.device_count(),
            arguments.len()
        )));
    }
    // Reducers run between the steps of the devices.
    let mut combining = evaluator(0);
    // Threads of rayon's pool wait for the devices' threads, which therefore must not wait for the pool.
    let is_in_pool = rayon::current_thread_index().is_some();
    let evaluators = (0..arguments.len()).map(|device| match is_in_pool {
        true => evaluator(device).with_threads(1),
        false => evaluator(device),
    });
    std::thread::scope(|scope| {
        let mut lockstep = Lockstep::new(grid, module);
        for (evaluator, arguments) in evaluators.zip(arguments) {
            lockstep.start(scope, evaluator, arguments)?;
        }
        lockstep.finish(&mut combining)
    })
}
