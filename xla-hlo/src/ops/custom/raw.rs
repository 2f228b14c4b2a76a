//! Custom calls on raw memory: handlers that get operands and results as bytes, in the layouts of the program.

use super::context::{CallState, CustomCallContext};
use crate::{Result, Shape};

/// The meaning of a custom call's target, on bytes where they lie. [`OnMemory`](super::OnMemory) makes a
/// [`CustomCallHandler`](super::CustomCallHandler) of it.
///
/// ```
/// use std::sync::Arc;
/// use xla_hlo::eval::Evaluator;
/// use xla_hlo::ops::{CustomCallRegistry, OnMemory, RawCall, RawCustomCall};
/// use xla_hlo::{Result, VerifiedModule, text};
///
/// struct Invert;
///
/// impl RawCustomCall for Invert {
///     fn execute(&self, call: &mut RawCall<'_>) -> Result<()> {
///         let (from, to) = (call.operands[0].bytes, &mut call.results[0].bytes);
///         to.iter_mut().zip(from).for_each(|(to, from)| *to = !from);
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let text = "ENTRY main { x = u8[2] parameter(0)
///   ROOT y = u8[2] custom-call(x), custom_call_target=\"invert\" }";
/// let module = VerifiedModule::new(text::parse_module(text)?)?;
/// let registry = CustomCallRegistry::new();
/// registry.register("invert", Arc::new(OnMemory(Invert)));
/// let x = text::parse_literal("u8[2] {1, 254}")?;
/// let y = Evaluator::new(&module).with_custom_calls(&registry).call(module.entry_id(), vec![x])?;
/// assert_eq!(y.to_string(), "u8[2] {254, 1}");
/// # Ok(())
/// # }
/// ```
pub trait RawCustomCall: Send + Sync {
    /// Makes the state of a call, once for each call of a program when it is loaded. Its error is that of loading.
    fn instantiate(&self, call: &CustomCallContext<'_>) -> Result<CallState> {
        let _ = call;
        Ok(std::sync::Arc::new(()))
    }

    /// The first stage of a run, before any call of the program is initialised.
    fn prepare(&self, call: &CustomCallContext<'_>, state: &CallState) -> Result<()> {
        let _ = (call, state);
        Ok(())
    }

    /// The second stage of a run, before any of its calls is executed.
    fn initialize(&self, call: &CustomCallContext<'_>, state: &CallState) -> Result<()> {
        let _ = (call, state);
        Ok(())
    }

    /// Computes the results. May be called from several threads at once, in any order that the program's data allows;
    /// calls without side effect also any number of times, or never.
    fn execute(&self, call: &mut RawCall<'_>) -> Result<()>;
}

/// One execution of a custom call.
pub struct RawCall<'a> {
    /// The call, and the values of the run.
    pub context: CustomCallContext<'a>,
    /// The call's own state.
    pub state: &'a CallState,
    /// Number of the device among the platform's.
    pub device: usize,
    /// The operands' arrays and tokens, depth first.
    pub operands: Vec<RawOperand<'a>>,
    /// The result's arrays and tokens, depth first.
    pub results: Vec<RawResult<'a>>,
}

/// An array or token of the operands.
#[derive(Clone, Debug)]
pub struct RawOperand<'a> {
    /// Its shape; an array's has the layout that the bytes are in: dense, each element in whole bytes.
    pub shape: &'a Shape,
    /// The bytes; none of tokens and of operands that a result aliases.
    pub bytes: &'a [u8],
    /// The result that lives in this operand's memory, which holds the operand's bytes until they are written over.
    pub alias: Option<usize>,
}

/// An array or token of the results.
#[derive(Debug)]
pub struct RawResult<'a> {
    /// Its shape, as of [`RawOperand::shape`].
    pub shape: &'a Shape,
    /// The bytes, with arbitrary contents unless it aliases an operand; none of tokens.
    pub bytes: &'a mut [u8],
}
