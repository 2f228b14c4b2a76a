//! Handlers of custom calls.

use super::context::CustomCallContext;
use super::raw::RawCustomCall;
use crate::{Literal, Result};

/// Implementation of a custom call's target.
///
/// Any function of a context and operands is a handler:
///
/// ```
/// use std::sync::Arc;
/// use xla_hlo::eval::Evaluator;
/// use xla_hlo::ops::{CustomCallContext, CustomCallRegistry};
/// use xla_hlo::{Literal, Result, Scalar, VerifiedModule, text::parse_module};
///
/// fn scale(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
///     let factor = call.attributes()?.integer("factor")? as f64;
///     Literal::from_fn(call.result_shape().expect_array()?, |i| match operands[0].get(i) {
///         Scalar::Float(x) => Scalar::Float(factor * x),
///         other => other,
///     })
/// }
///
/// # fn main() -> Result<()> {
/// let text = "ENTRY main {
///   x = f32[2] parameter(0)
///   ROOT y = f32[2] custom-call(x), custom_call_target=\"scale\", api_version=API_VERSION_TYPED_FFI,
///     backend_config={factor = 3 : i64}
/// }";
/// let module = VerifiedModule::new(parse_module(text)?)?;
/// assert!(CustomCallRegistry::new().check(&module).is_err());
///
/// let registry = CustomCallRegistry::new();
/// registry.register("scale", Arc::new(scale));
/// registry.check(&module)?;
/// let x = xla_hlo::text::parse_literal("f32[2] {1, -2}")?;
/// let y = Evaluator::new(&module).with_custom_calls(&registry).call(module.entry_id(), vec![x])?;
/// assert_eq!(y.to_string(), "f32[2] {3, -6}");
/// # Ok(())
/// # }
/// ```
pub trait CustomCallHandler: Send + Sync {
    /// Returns the result for the operands, of the shape [`CustomCallContext::result_shape`].
    ///
    /// May be called from several threads at once, in any order that respects the program's data dependences. Calls
    /// without side effects may be executed any number of times, or never.
    fn call(&self, call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal>;

    /// Returns the implementation on raw memory, if there is one. Callers that have operands as bytes use it; see
    /// [`OnMemory`](super::OnMemory).
    fn raw(&self) -> Option<&dyn RawCustomCall> {
        None
    }
}

impl<F> CustomCallHandler for F
where
    F: Fn(&CustomCallContext<'_>, Vec<Literal>) -> Result<Literal> + Send + Sync,
{
    fn call(&self, call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
        self(call, operands)
    }
}
