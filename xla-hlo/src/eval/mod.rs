//! Reference evaluator: simple enough to be evidently correct, and the oracle of all other execution paths.
//!
//! [`evaluate`] runs a whole module; [`Evaluator`] runs single computations and enforces the limits. The semantics of
//! each operation are defined in the folder of its family under [`ops`](crate::ops); this module only walks the
//! instructions. [`ScalarFunction`] runs small called computations (reducers, comparators) element by element without
//! creating literals.

mod device;
pub mod grid;
pub(crate) mod parallel;
mod plan;
mod random_state;
mod scalar_function;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use device::Device;
pub use device::Peers;
use plan::{Access, Plan, Step};
pub use random_state::RandomState;
pub use scalar_function::ScalarFunction;

use crate::module::dynamic_result;
use crate::ops::dynamic::sizes;
use crate::ops::{CustomCallRegistry, Op};
use crate::out_of_memory::ensure_thread_room;
use crate::{CompId, Computation, Error, InstrId, Instruction, Literal, Module, Result, Shape};

/// Maximum depth of nested calls between computations during evaluation; bounds memory.
pub const MAX_CALL_DEPTH: usize = 10_000;

/// Number of nested calls on the stack of one thread. Deeper calls run on a new thread while the caller waits.
const CALLS_PER_STACK: usize = 200;

/// Stack size of such a thread.
const STACK_BYTES: usize = 4 << 20;

/// Runs the entry computation of a module on `arguments`: one for each parameter, with the parameter's shape (layouts
/// are ignored).
///
/// An error names the first argument that does not fit, and both shapes.
pub fn evaluate(module: &Module, arguments: Vec<Literal>) -> Result<Literal> {
    check_arguments(module, &arguments)?;
    Evaluator::new(module).with_threads(available_threads()).call_entry(arguments)
}

/// Returns the number of threads that the machine runs at a time.
fn available_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Checks number and shapes of the entry's arguments.
fn check_arguments(module: &Module, arguments: &[Literal]) -> Result<()> {
    let entry = module.entry();
    let parameters: Vec<_> = entry.parameters().iter().map(|&p| &entry[p]).collect();
    if parameters.len() != arguments.len() {
        return Err(Error::invalid_argument(format!(
            "module {} takes {} arguments, {} were given",
            module.name(),
            parameters.len(),
            arguments.len()
        )));
    }
    for (i, (parameter, argument)) in parameters.iter().zip(arguments).enumerate() {
        if !sizes::fits(argument.shape(), parameter.shape()) {
            return Err(Error::invalid_argument(format!(
                "argument {i} ({}) of module {} must be {}, it is {}",
                parameter.name(),
                module.name(),
                parameter.shape().without_layout(),
                argument.shape()
            )));
        }
    }
    Ok(())
}

/// Runner of computations of a verified module on literals.
///
/// Operands are moved into the operation that uses them last. An in-place update of an array without other readers
/// therefore copies nothing (see [`Literal::bytes_mut`]).
pub struct Evaluator<'m> {
    module: &'m Module,
    plans: HashMap<CompId, Arc<Plan>>,
    depth: usize,
    /// Instruction whose evaluation began last, with its computation.
    current: Option<(&'m Computation, InstrId)>,
    steps_left: u64,
    threads: usize,
    cancelled: Option<Arc<AtomicBool>>,
    custom_calls: Cow<'m, CustomCallRegistry>,
    random: RandomState,
    /// Device that this evaluator runs; `None` if it is the only one.
    device: Option<Device<'m>>,
    /// Whether the propagating error already names the instruction that failed.
    blamed: bool,
}

impl<'m> Evaluator<'m> {
    /// Creates an evaluator of that module, without limits, on one thread.
    pub fn new(module: &'m Module) -> Evaluator<'m> {
        Evaluator {
            module,
            plans: HashMap::new(),
            depth: 0,
            current: None,
            steps_left: u64::MAX,
            threads: 1,
            cancelled: None,
            custom_calls: Cow::default(),
            random: RandomState::new(),
            device: None,
            blamed: false,
        }
    }

    /// Stops with [`Error::ResourceExhausted`] once `steps` instructions have run, including those of called
    /// computations.
    #[must_use]
    pub fn with_step_limit(mut self, steps: u64) -> Evaluator<'m> {
        self.steps_left = steps;
        self
    }

    /// Stops with [`Error::Cancelled`] before the next instruction once the flag is set.
    #[must_use]
    pub fn with_cancellation(mut self, cancelled: Arc<AtomicBool>) -> Evaluator<'m> {
        self.cancelled = Some(cancelled);
        self
    }

    /// Lets expensive operations use up to `threads` threads of rayon's pool; results do not depend on it.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Evaluator<'m> {
        self.threads = threads;
        self
    }

    /// Runs custom calls with the handlers of `registry`; by default, with the built-in ones.
    #[must_use]
    pub fn with_custom_calls(mut self, registry: &'m CustomCallRegistry) -> Evaluator<'m> {
        self.custom_calls = Cow::Borrowed(registry);
        self
    }

    /// Returns the handlers of custom calls.
    pub(crate) fn custom_calls(&self) -> &CustomCallRegistry {
        &self.custom_calls
    }

    /// Returns the instruction whose evaluation began last.
    pub(crate) fn instruction(&self) -> Option<&'m Instruction> {
        self.current.map(|(computation, id)| &computation[id])
    }

    /// Makes this the evaluator of one device of a program for several devices; `peers` connects it to the others.
    #[must_use]
    pub fn on_device(mut self, replica: usize, partition: usize, peers: Arc<dyn Peers<'m> + 'm>) -> Evaluator<'m> {
        self.device = Some(Device { replica, partition, peers });
        self
    }

    /// Returns the device that this evaluator runs; `None` if it is the only one.
    pub(crate) fn device(&self) -> Option<&Device<'m>> {
        self.device.as_ref()
    }

    /// Returns the instruction whose evaluation began last, and its computation.
    pub(crate) fn position(&self) -> Result<(&'m Computation, InstrId)> {
        self.current.ok_or_else(|| Error::internal("no instruction is being evaluated"))
    }

    /// Draws random numbers from `state`; by default, an evaluator has its own counter in its initial state.
    #[must_use]
    pub fn with_random_state(mut self, state: RandomState) -> Evaluator<'m> {
        self.random = state;
        self
    }

    /// Returns the state that random numbers are drawn from.
    pub fn random_state(&self) -> &RandomState {
        &self.random
    }

    /// Returns the module whose computations are run.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// Returns the shape of operand `i` of the instruction whose evaluation began last, including the layout that
    /// literals lack.
    ///
    /// Valid until the instruction calls a computation; `None` before the first instruction.
    pub fn operand_shape(&self, i: usize) -> Option<&'m Shape> {
        let (computation, id) = self.current?;
        computation[id].operands().get(i).map(|&operand| computation[operand].shape())
    }

    /// Runs the entry computation on one literal for each parameter, of the parameters' shapes. Returns the result as
    /// callers see it: arrays of dynamic size have their real sizes, whether or not `pad-dynamic` has run.
    pub fn call_entry(&mut self, arguments: Vec<Literal>) -> Result<Literal> {
        let result = self.call(self.module.entry_id(), arguments)?;
        dynamic_result::caller_value(self.module, result)
    }

    /// Runs a computation on one literal for each parameter, of the parameters' shapes.
    ///
    /// An error names the innermost instruction that failed and its computation.
    pub fn call(&mut self, computation: CompId, arguments: Vec<Literal>) -> Result<Literal> {
        let Some(callee) = self.module.get(computation) else {
            return Err(Error::invalid_argument("the called computation does not exist"));
        };
        if self.depth == MAX_CALL_DEPTH {
            return Err(Error::resource_exhausted(format!(
                "calls nest deeper than {MAX_CALL_DEPTH} at computation {}; inline calls",
                callee.name()
            )));
        }
        self.blamed = false;
        let plan = self.plan(computation);
        let is_stack_full = self.depth > 0 && self.depth.is_multiple_of(CALLS_PER_STACK);
        self.depth += 1;
        let result = match is_stack_full {
            true => self.on_new_stack(|evaluator| evaluator.run(callee, &plan, arguments)),
            false => self.run(callee, &plan, arguments),
        };
        self.depth -= 1;
        result
    }

    /// Runs `f` on a new thread, and thus on an empty stack.
    fn on_new_stack<T: Send>(&mut self, f: impl FnOnce(&mut Self) -> Result<T> + Send) -> Result<T> {
        let threads = self.threads;
        if rayon::current_thread_index().is_some() {
            // The new thread must not wait for the pool, because all threads of the pool may be waiting for such
            // threads.
            self.threads = 1;
        }
        let result = thread::scope(|scope| {
            ensure_thread_room()?;
            let builder = thread::Builder::new().name("evaluator".to_string()).stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, || f(self)) {
                Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(error) => Err(Error::resource_exhausted(format!(
                    "cannot start a thread for calls nested deeper than {CALLS_PER_STACK}: {error}"
                ))),
            }
        });
        self.threads = threads;
        result
    }

    /// Evaluates one instruction on the values of its operands.
    pub fn evaluate(&mut self, computation: CompId, id: InstrId, operands: Vec<Literal>) -> Result<Literal> {
        let computation = self
            .module
            .get(computation)
            .ok_or_else(|| Error::invalid_argument("the computation of the instruction does not exist"))?;
        self.current = Some((computation, id));
        let instruction = &computation[id];
        instruction.op().rules().evaluate(self, operands, instruction.shape())
    }

    fn plan(&mut self, computation: CompId) -> Arc<Plan> {
        let module = self.module;
        self.plans.entry(computation).or_insert_with(|| Arc::new(Plan::new(module, &module[computation]))).clone()
    }

    fn run(&mut self, computation: &'m Computation, plan: &Plan, arguments: Vec<Literal>) -> Result<Literal> {
        let mut arguments: Vec<Option<Literal>> = arguments.into_iter().map(Some).collect();
        let mut values: Vec<Option<Literal>> = vec![None; plan.steps.len()];
        for (i, step) in plan.steps.iter().enumerate() {
            let result = self.spend_steps(1).and_then(|()| self.step(computation, step, &mut values, &mut arguments));
            match result {
                Ok(value) => values[i] = step.is_used.then_some(value),
                Err(error) if self.blamed => return Err(error),
                Err(error) => {
                    self.blamed = true;
                    let instruction = computation[step.instruction].name();
                    return Err(
                        error.context(format!("evaluating {instruction} of computation {}", computation.name()))
                    );
                }
            }
        }
        let root = plan.root.and_then(|root| values[root].take());
        root.ok_or_else(|| Error::internal(format!("computation {} has no root", computation.name())))
    }

    /// Counts work against the step limit. Fails if the limit is exhausted or the evaluation was cancelled.
    fn spend_steps(&mut self, steps: u64) -> Result<()> {
        if self.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Error::cancelled("the evaluation was cancelled"));
        }
        self.steps_left = self
            .steps_left
            .checked_sub(steps)
            .ok_or_else(|| Error::resource_exhausted("the evaluation exceeded its limit of steps"))?;
        Ok(())
    }

    fn step(
        &mut self,
        computation: &'m Computation,
        step: &Step,
        values: &mut [Option<Literal>],
        arguments: &mut [Option<Literal>],
    ) -> Result<Literal> {
        let instruction = &computation[step.instruction];
        let value = match instruction.op() {
            Op::Parameter(p) => arguments
                .get_mut(p.number)
                .and_then(Option::take)
                .ok_or_else(|| Error::invalid_argument(format!("no argument was given for parameter {}", p.number)))?,
            Op::GetTupleElement(get) => element(values, step.operands[0], get.index)?,
            op => {
                let mut operands =
                    step.operands.iter().map(|&operand| whole(values, operand)).collect::<Result<Vec<_>>>()?;
                self.current = Some((computation, step.instruction));
                if !takes_splats(op) {
                    operands.iter().try_for_each(Literal::densify)?;
                }
                if step.is_dynamic {
                    let (op, shape) = sizes::at_real_sizes(op, self.module, &mut operands, instruction.shape())?;
                    op.rules().evaluate(self, operands, &shape)?
                } else {
                    op.rules().evaluate(self, operands, instruction.shape())?
                }
            }
        };
        check_result(&value, instruction.shape())?;
        Ok(value)
    }
}

/// Whether an operation passes splats on, or computes a splat from one element. The other operations read the bytes of
/// every element, so there must be memory for all of them.
fn takes_splats(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare(_)
            | Op::Select(_)
            | Op::Clamp(_)
            | Op::Convert(_)
            | Op::BitcastConvert(_)
            | Op::ReducePrecision(_)
            | Op::Broadcast(_)
            | Op::Reshape(_)
            | Op::Transpose(_)
            | Op::Slice(_)
            | Op::DynamicSlice(_)
            | Op::Gather(_)
            | Op::Reverse(_)
            | Op::Copy(_)
            | Op::Tuple(_)
            | Op::OptBarrier(_)
            | Op::Call(_)
            | Op::Fusion(_)
            | Op::While(_)
            | Op::Conditional(_)
    )
}

/// Returns the operand's value, moved out at its last use.
fn whole(values: &mut [Option<Literal>], (at, access): (usize, Access)) -> Result<Literal> {
    let value = values.get_mut(at).and_then(|slot| match access {
        Access::Take => slot.take(),
        Access::Share | Access::TakeElement => slot.clone(),
    });
    value.ok_or_else(|| Error::internal("an operand is used before it is computed"))
}

/// Returns an element of the operand's value, moved out if it has no later readers.
fn element(values: &mut [Option<Literal>], (at, access): (usize, Access), index: usize) -> Result<Literal> {
    let element = values.get_mut(at).and_then(|slot| match access {
        Access::Take => slot.take()?.into_elements().into_iter().nth(index),
        Access::TakeElement => slot.as_mut()?.take_element(index),
        Access::Share => slot.as_ref()?.elements().get(index).cloned(),
    });
    element.ok_or_else(|| Error::internal(format!("the operand has no element {index}")))
}

/// Checks the shape of a result: a rule whose result differs from the instruction's shape is a bug, reported here
/// before it causes damage.
fn check_result(value: &Literal, shape: &Shape) -> Result<()> {
    if sizes::fits(value.shape(), shape) {
        return Ok(());
    }
    Err(Error::internal(format!(
        "the evaluation returned {}, but the instruction has shape {}",
        value.shape(),
        shape.without_layout()
    )))
}
