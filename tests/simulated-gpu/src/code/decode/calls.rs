//! Decoder of `call`, for the one function of CUDA's device runtime that conditional graph nodes need.

use super::decoder::{Decoder, Result};
use crate::code::Op;
use crate::ptx::Operand;

impl<'a> Decoder<'a> {
    /// Decodes `call name, (a, b);`. Parameters of a call are slots.
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
