//! The reference evaluator: simple, obviously right, the oracle of everything else.

use crate::{CompId, Error, Literal, Module, Result};

/// Runs computations of a module on literals.
pub struct Evaluator<'m> {
    module: &'m Module,
}

impl<'m> Evaluator<'m> {
    /// An evaluator of that module.
    pub fn new(module: &'m Module) -> Evaluator<'m> {
        Evaluator { module }
    }

    /// The module whose computations are run.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// Runs a computation.
    pub fn call(&mut self, computation: CompId, arguments: Vec<Literal>) -> Result<Literal> {
        let _ = arguments;
        Err(Error::unimplemented(self.module[computation].name()))
    }
}
