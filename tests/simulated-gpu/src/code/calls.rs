//! Calls: the one function of CUDA's device runtime that graphs need.

use super::Op;
use super::decode::{Decoder, Result};
use crate::ptx::{Function, Operand};

/// What is known of a function that may be called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callee {
    parameters: usize,
    has_body: bool,
}

impl Callee {
    pub(super) fn of(function: &Function<'_>) -> Callee {
        Callee { parameters: function.parameters.len(), has_body: function.body.is_some() }
    }
}

impl<'a> Decoder<'a> {
    /// `call name, (a, b);`. A parameter of a call is a slot.
    pub(super) fn call(&mut self, operands: &[Operand<'a>]) -> Result<()> {
        let [Operand::Name(name), Operand::List(arguments)] = operands else {
            return self.error("a call of this form is not known");
        };
        let Some(callee) = self.callees.get(*name) else {
            return self.error(format!("the function {name} is not declared"));
        };
        if callee.parameters != arguments.len() {
            return self.error(format!("{name} has {} parameters", callee.parameters));
        }
        match (*name, callee.has_body, arguments.as_slice()) {
            ("cudaGraphSetConditional", false, [Operand::Name(handle), Operand::Name(value)]) => {
                let op = Op::SetCondition([self.register(handle)?, self.register(value)?]);
                self.push(op);
                Ok(())
            }
            (_, true, _) => self.error(format!("calls of functions with a body are not known: {name}")),
            _ => self.error(format!("the function {name} is not defined anywhere")),
        }
    }
}
