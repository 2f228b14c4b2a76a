//! Context that a custom call's handler receives with each call.

use std::any::Any;
use std::sync::Arc;

use super::call::CustomCall;
use super::ffi::FfiAttributes;
use super::run_context::RunContext;
use crate::module::backend_config;
use crate::{Result, Shape};

/// Handler-specific value for one call of a program, created when the program is loaded.
pub type CallState = Arc<dyn Any + Send + Sync>;

/// Context of a call for its handler, in addition to the operands.
#[derive(Clone, Copy)]
pub struct CustomCallContext<'a> {
    pub(super) op: &'a CustomCall,
    pub(super) config: &'a [u8],
    pub(super) result: &'a Shape,
    pub(super) run: &'a RunContext,
    /// State of a call that was instantiated before.
    pub(super) state: Option<&'a CallState>,
}

impl<'a> CustomCallContext<'a> {
    /// Returns the call with all its attributes.
    pub fn op(&self) -> &'a CustomCall {
        self.op
    }

    /// Returns the handler's configuration bytes (`backend_config`), which are opaque to the compiler.
    pub fn config(&self) -> &'a [u8] {
        self.config
    }

    /// Returns the configuration as text. Fails if it is not UTF-8.
    pub fn config_text(&self) -> Result<&'a str> {
        backend_config::text("backend_config", self.config)
    }

    /// Returns the configuration as typed values, for calls of [`CustomCallApi::TypedFfi`](super::CustomCallApi). An
    /// empty configuration has no values.
    pub fn attributes(&self) -> Result<FfiAttributes> {
        FfiAttributes::parse(self.config_text()?)
    }

    /// Returns the shape of the result, including layouts.
    pub fn result_shape(&self) -> &'a Shape {
        self.result
    }

    /// Returns the values passed to the run.
    pub fn run(&self) -> &'a RunContext {
        self.run
    }
}
