//! Registry of custom call handlers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::builtin;
use super::call::CustomCall;
use super::context::{CallState, CustomCallContext};
use super::handler::CustomCallHandler;
use super::raw::RawCustomCall;
use super::run_context::RunContext;
use super::states::{CallStates, LoadedCall};
use crate::effects::Effects;
use crate::{Error, Instruction, Literal, Module, Op, Result, ResultExt};

/// Handlers by target. Registered handlers precede built-in ones.
///
/// | built in | returns |
/// | --- | --- |
/// | `Eigh` | eigenvectors and eigenvalues of symmetric matrices |
/// | `Qr` | Householder vectors with the triangular factor, and their scales |
/// | `ProductOfElementaryHouseholderReflectors` | the matrix with orthonormal columns that the reflectors represent |
/// | `lapack_{s,d,c,z}R_ffi` of R = `potrf`, `getrf`, `geqrf`, `geqp3`, `trsm`, `gtsv` | factors and solutions, as JAX calls them |
/// | of R = `gesdd`, `gesvd`, `geev`, `gees`, `gehrd` | singular values, eigenvalues, Schur and Hessenberg forms |
/// | of R = `orgqr`, `ormqr`, `syevd`, `sytrd` (s, d), `ungqr`, `unmqr`, `heevd`, `hetrd` (c, z) | products of reflections, decompositions of symmetric matrices |
/// | `tridiagonal_solve_perturbed_ffi` | solutions of tridiagonal systems that may be singular |
/// | `cpu_csr_sparse_dense_ffi` | products of a matrix in compressed rows and a dense array |
///
/// Clones share the same handlers: a handler registered with one clone is used by programs that are loaded or run with
/// any of them.
#[derive(Clone, Default)]
pub struct CustomCallRegistry {
    handlers: Arc<RwLock<Handlers>>,
    /// Wrapper around the execution of registered handlers.
    around: Option<fn(&mut dyn FnMut())>,
    /// Context of the run that uses this registry.
    run: Option<Arc<RunContext>>,
    states: Option<Arc<CallStates>>,
}

type Handlers = BTreeMap<String, Arc<dyn CustomCallHandler>>;

/// A handler and its origin.
enum Found {
    Registered(Arc<dyn CustomCallHandler>),
    BuiltIn(&'static dyn CustomCallHandler),
}

impl CustomCallRegistry {
    /// Creates a registry that only has the built-in handlers.
    pub fn new() -> CustomCallRegistry {
        CustomCallRegistry::default()
    }

    /// Registers the handler of a target, which takes precedence over a built-in one. Returns the handler that it
    /// replaces. Programs whose calls were [instantiated](CustomCallRegistry::instantiate) before keep their handlers.
    pub fn register(
        &self,
        target: impl Into<String>,
        handler: Arc<dyn CustomCallHandler>,
    ) -> Option<Arc<dyn CustomCallHandler>> {
        self.handlers.write().unwrap_or_else(PoisonError::into_inner).insert(target.into(), handler)
    }

    /// Whether a target has a handler.
    pub fn has(&self, target: &str) -> bool {
        self.registered(target).is_some() || builtin::find(target).is_some()
    }

    /// Returns a registry that runs registered handlers inside of `around`, since they may block or call back.
    #[must_use]
    pub fn with_calls_inside(mut self, around: fn(&mut dyn FnMut())) -> CustomCallRegistry {
        self.around = Some(around);
        self
    }

    /// Returns a registry for one run of a program, with the values of the run and the states of the program's calls.
    #[must_use]
    pub fn for_run(&self, run: Arc<RunContext>, states: Arc<CallStates>) -> CustomCallRegistry {
        CustomCallRegistry { run: Some(run), states: Some(states), ..self.clone() }
    }

    /// Creates the states of a module's live custom calls on raw memory. The module must not be moved or changed while
    /// the states are in use.
    pub fn instantiate(&self, module: &Module) -> Result<CallStates> {
        let mut states = CallStates::default();
        for (computation, id) in Effects::of(module).live_instructions(module) {
            let instruction = &module[computation][id];
            let Op::CustomCall(op) = instruction.op() else { continue };
            let Some(handler) = self.registered(&op.target) else { continue };
            let Some(raw) = handler.raw() else { continue };
            let context = self.context(op, instruction, None);
            let state = self.inside(|| raw.instantiate(&context));
            let state = state.context(|| format!("custom call {:?} (%{})", op.target, instruction.name()))?;
            states.push(instruction, LoadedCall { instruction: (computation, id), handler, state });
        }
        Ok(states)
    }

    /// Runs the stages that precede a run for all calls with states (see [`CustomCallRegistry::for_run`]): prepares all
    /// calls, and then initialises all.
    pub fn begin_run(&self, module: &Module) -> Result<()> {
        type Stage = fn(&dyn RawCustomCall, &CustomCallContext<'_>, &CallState) -> Result<()>;
        let stages: [Stage; 2] =
            [|raw, call, state| raw.prepare(call, state), |raw, call, state| raw.initialize(call, state)];
        let calls = self.states.as_deref().map_or(&[][..], CallStates::calls);
        for stage in stages {
            for LoadedCall { instruction: (computation, id), handler, state } in calls {
                let instruction = &module[*computation][*id];
                if let (Op::CustomCall(op), Some(raw)) = (instruction.op(), handler.raw()) {
                    let context = self.context(op, instruction, Some(state));
                    let outcome = self.inside(|| stage(raw, &context, state));
                    outcome.context(|| format!("custom call {:?}", op.target))?;
                }
            }
        }
        Ok(())
    }

    /// Whether a call was instantiated, so that [`CustomCallRegistry::call_raw`] executes it.
    pub fn is_raw(&self, instruction: &Instruction) -> bool {
        self.states.as_ref().is_some_and(|states| states.find(instruction).is_some())
    }

    /// Executes an instantiated call on raw memory: calls `execute` with the handler, the context and the state of the
    /// call. `None` for other calls, which [`CustomCallRegistry::call`] executes.
    pub fn call_raw<T>(
        &self,
        instruction: &Instruction,
        execute: impl FnOnce(&dyn RawCustomCall, CustomCallContext<'_>, &CallState) -> Result<T>,
    ) -> Option<Result<T>> {
        let Op::CustomCall(op) = instruction.op() else { return None };
        let LoadedCall { handler, state, .. } = self.states.as_ref()?.find(instruction)?;
        let raw = handler.raw()?;
        let outcome = self.inside(|| execute(raw, self.context(op, instruction, Some(state)), state));
        Some(outcome.context(|| format!("custom call {:?}", op.target)))
    }

    /// Checks that every live custom call of a module has a handler or is equivalent to an operation
    /// ([`CustomCall::operation`](super::CustomCall::operation)). [`Error::Unimplemented`] names the first call that
    /// has neither.
    pub fn check(&self, module: &Module) -> Result<()> {
        for (id, instruction) in Effects::of(module).live_instructions(module) {
            let (computation, found) = (&module[id], &module[id][instruction]);
            if let Op::CustomCall(op) = found.op() {
                let operation = op.operation(module, &computation.operand_shapes(instruction), found.shape());
                let known = operation.map(|operation| operation.is_some() || self.has(&op.target));
                let known = known.and_then(|known| if known { Ok(()) } else { Err(unknown(&op.target)) });
                known.context(|| format!("%{} of {}", found.name(), computation.name()))?;
            }
        }
        Ok(())
    }

    /// Runs the custom call of an instruction.
    ///
    /// Fails with the error of the handler, with [`Error::Unimplemented`] if there is no handler, and with
    /// [`Error::Internal`] if the result does not have the instruction's shape.
    pub fn call(&self, instruction: &Instruction, operands: Vec<Literal>) -> Result<Literal> {
        let Op::CustomCall(op) = instruction.op() else {
            return Err(Error::internal(format!("{} is not a custom call", instruction.opcode())));
        };
        let loaded = self.states.as_ref().and_then(|states| states.find(instruction));
        let found = match (loaded, self.registered(&op.target)) {
            (Some(loaded), _) => Found::Registered(loaded.handler.clone()),
            (None, Some(handler)) => Found::Registered(handler),
            (None, None) => Found::BuiltIn(builtin::find(&op.target).ok_or_else(|| unknown(&op.target))?),
        };
        let context = self.context(op, instruction, loaded.map(|loaded| &loaded.state));
        let named = |error: Error| error.context(format!("custom call {:?}", op.target));
        let result = match found {
            Found::Registered(handler) => self.inside(|| handler.call(&context, operands)),
            Found::BuiltIn(handler) => handler.call(&context, operands),
        };
        let result = result.map_err(named)?;
        if result.shape().compatible(instruction.shape()) {
            return Ok(result);
        }
        let (found, expected) = (result.shape(), instruction.shape().without_layout());
        Err(named(Error::internal(format!("the handler returned {found}, but the instruction has shape {expected}"))))
    }

    fn registered(&self, target: &str) -> Option<Arc<dyn CustomCallHandler>> {
        self.handlers.read().unwrap_or_else(PoisonError::into_inner).get(target).cloned()
    }

    fn context<'a>(
        &'a self,
        op: &'a CustomCall,
        instruction: &'a Instruction,
        state: Option<&'a CallState>,
    ) -> CustomCallContext<'a> {
        let config = instruction.annotations().map_or(&[][..], |a| a.backend_config.as_bytes());
        let run = self.run.as_deref().unwrap_or(RunContext::nothing());
        CustomCallContext { op, config, result: instruction.shape(), run, state }
    }

    /// Runs a handler inside of the wrapper, if there is one.
    fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(around) = self.around else { return work() };
        let (mut work, mut result) = (Some(work), None);
        around(&mut || result = work.take().map(|work| work()));
        match (result, work) {
            (Some(result), _) => result,
            // The wrapper did not call its argument, so the handler runs without it.
            (None, Some(work)) => work(),
            (None, None) => unreachable!("work that was taken has no result"),
        }
    }
}

fn unknown(target: &str) -> Error {
    Error::unimplemented(format!("no handler is registered for the custom call target {target:?}; register one"))
}

impl fmt::Debug for CustomCallRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomCallRegistry")
            .field(&self.handlers.read().unwrap_or_else(PoisonError::into_inner).keys().collect::<Vec<_>>())
            .finish()
    }
}
