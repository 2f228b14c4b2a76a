//! Custom calls on raw memory: handlers receive operands and results as bytes, in the layouts of the program.

use super::context::{CallState, CustomCallContext};
use crate::{Result, Shape};

/// Implementation of a custom call's target that operates on bytes in place. [`OnMemory`](super::OnMemory) converts it
/// to a [`CustomCallHandler`](super::CustomCallHandler).
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
    /// Creates the state of a call. Called once for each call of a program when the program is loaded; an error fails
    /// the load.
    fn instantiate(&self, call: &CustomCallContext<'_>) -> Result<CallState> {
        let _ = call;
        Ok(std::sync::Arc::new(()))
    }

    /// First stage of a run, before any call of the program is initialised.
    fn prepare(&self, call: &CustomCallContext<'_>, state: &CallState) -> Result<()> {
        let _ = (call, state);
        Ok(())
    }

    /// Second stage of a run, before any of its calls is executed.
    fn initialize(&self, call: &CustomCallContext<'_>, state: &CallState) -> Result<()> {
        let _ = (call, state);
        Ok(())
    }

    /// Computes the results. May be called from several threads at once, in any order that respects the program's data
    /// dependences. Calls without side effects may be executed any number of times, or never.
    fn execute(&self, call: &mut RawCall<'_>) -> Result<()>;
}

/// One execution of a custom call.
pub struct RawCall<'a> {
    /// The call, and the values of the run.
    pub context: CustomCallContext<'a>,
    /// State of this call.
    pub state: &'a CallState,
    /// Index of the device on its platform.
    pub device: usize,
    /// Arrays and tokens of the operands, depth first.
    pub operands: Vec<RawOperand<'a>>,
    /// Arrays and tokens of the result, depth first.
    pub results: Vec<RawResult<'a>>,
}

/// An array or token of the operands.
#[derive(Clone, Debug)]
pub struct RawOperand<'a> {
    /// Shape of the operand. The layout of an array describes the bytes: dense, each element in whole bytes.
    pub shape: &'a Shape,
    /// Bytes of the operand; empty for tokens and for operands that a result aliases.
    pub bytes: &'a [u8],
    /// Index of the result that shares this operand's memory. The memory holds the operand's bytes until the handler
    /// overwrites them.
    pub alias: Option<usize>,
}

/// An array or token of the results.
#[derive(Debug)]
pub struct RawResult<'a> {
    /// Shape of the result, with the layout conventions of [`RawOperand::shape`].
    pub shape: &'a Shape,
    /// Bytes of the result, with arbitrary contents unless it aliases an operand; empty for tokens.
    pub bytes: &'a mut [u8],
}
