//! Contexts that handlers of custom calls get with each call.

use std::any::Any;
use std::sync::Arc;

use super::call::CustomCall;
use super::ffi::FfiAttributes;
use super::run_context::RunContext;
use crate::module::backend_config;
use crate::{Result, Shape};

/// A handler's own value for one call of a program, made when the program is loaded.
pub type CallState = Arc<dyn Any + Send + Sync>;

/// Context of a call for its handler, besides the operands.
#[derive(Clone, Copy)]
pub struct CustomCallContext<'a> {
    pub(super) op: &'a CustomCall,
    pub(super) config: &'a [u8],
    pub(super) result: &'a Shape,
    pub(super) run: &'a RunContext,
    /// The state of a call that was instantiated before.
    pub(super) state: Option<&'a CallState>,
}

impl<'a> CustomCallContext<'a> {
    /// The call and all its attributes.
    pub fn op(&self) -> &'a CustomCall {
        self.op
    }

    /// The bytes that the program has for the handler (`backend_config`), opaque to the compiler.
    pub fn config(&self) -> &'a [u8] {
        self.config
    }

    /// The configuration as text; an error where it is not UTF-8.
    pub fn config_text(&self) -> Result<&'a str> {
        backend_config::text("backend_config", self.config)
    }

    /// The configuration as typed values, for calls of [`CustomCallApi::TypedFfi`](super::CustomCallApi). An empty
    /// one has none.
    pub fn attributes(&self) -> Result<FfiAttributes> {
        FfiAttributes::parse(self.config_text()?)
    }

    /// Shape of the result, layouts included.
    pub fn result_shape(&self) -> &'a Shape {
        self.result
    }

    /// The values handed along with the run.
    pub fn run(&self) -> &'a RunContext {
        self.run
    }
}
