//! Registry of handlers of custom calls.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{CustomCallContext, CustomCallHandler, builtin};
use crate::effects::Effects;
use crate::{Error, Instruction, Literal, Module, Op, Result, ResultExt};

/// Handlers by target: those that are registered, then those that are built in.
///
/// | built in | returns |
/// | --- | --- |
/// | `Eigh` | eigenvectors and eigenvalues of symmetric matrices |
/// | `Qr` | Householder vectors with the triangular factor, and their scales |
/// | `ProductOfElementaryHouseholderReflectors` | the matrix with orthonormal columns that those stand for |
/// | `lapack_{s,d,c,z}R_ffi` of R = `potrf`, `getrf`, `geqrf`, `geqp3`, `trsm`, `gtsv` | factors and solutions, as JAX calls them |
/// | of R = `gesdd`, `gesvd`, `geev`, `gees`, `gehrd` | singular values, eigenvalues, Schur and Hessenberg forms |
/// | of R = `orgqr`, `ormqr`, `syevd`, `sytrd` (s, d), `ungqr`, `unmqr`, `heevd`, `hetrd` (c, z) | the same of reflections and symmetric matrices |
/// | `tridiagonal_solve_perturbed_ffi` | solutions of tridiagonal systems that may be singular |
/// | `cpu_csr_sparse_dense_ffi` | products of a matrix in compressed rows and a dense array |
#[derive(Clone, Default)]
pub struct CustomCallRegistry {
    handlers: BTreeMap<String, Arc<dyn CustomCallHandler>>,
}

impl CustomCallRegistry {
    /// A registry of the built-in handlers alone.
    pub fn new() -> CustomCallRegistry {
        CustomCallRegistry::default()
    }

    /// Gives a target its meaning, before anything built in; returns the handler that it replaces.
    pub fn register(
        &mut self,
        target: impl Into<String>,
        handler: Arc<dyn CustomCallHandler>,
    ) -> Option<Arc<dyn CustomCallHandler>> {
        self.handlers.insert(target.into(), handler)
    }

    /// The handler of a target.
    pub fn find(&self, target: &str) -> Option<&dyn CustomCallHandler> {
        self.handlers.get(target).map(|handler| &**handler).or_else(|| builtin::find(target))
    }

    /// Demands that every live custom call of a module has a handler or stands for an operation
    /// ([`CustomCall::operation`](super::CustomCall::operation)); [`Error::Unimplemented`] names the first one that has
    /// none.
    pub fn check(&self, module: &Module) -> Result<()> {
        for (id, instruction) in Effects::of(module).live_instructions(module) {
            let (computation, found) = (&module[id], &module[id][instruction]);
            if let Op::CustomCall(op) = found.op() {
                let operation = op.operation(module, &computation.operand_shapes(instruction), found.shape());
                let known = operation.map(|operation| operation.is_some() || self.find(&op.target).is_some());
                let known = known.and_then(|known| if known { Ok(()) } else { Err(unknown(&op.target)) });
                known.context(|| format!("%{} of {}", found.name(), computation.name()))?;
            }
        }
        Ok(())
    }

    /// Runs the custom call of an instruction.
    ///
    /// Errors: those of the handler, [`Error::Unimplemented`] where there is none, [`Error::Internal`] where its result
    /// does not have the instruction's shape.
    pub fn call(&self, instruction: &Instruction, operands: Vec<Literal>) -> Result<Literal> {
        let Op::CustomCall(op) = instruction.op() else {
            return Err(Error::internal(format!("{} is not a custom call", instruction.opcode())));
        };
        let handler = self.find(&op.target).ok_or_else(|| unknown(&op.target))?;
        let config = instruction.annotations().map_or("", |a| a.backend_config.as_str());
        let context = CustomCallContext { op, config, result: instruction.shape() };
        let named = |error: Error| error.context(format!("custom call {:?}", op.target));
        let result = handler.call(&context, operands).map_err(named)?;
        if result.shape().compatible(instruction.shape()) {
            return Ok(result);
        }
        let (found, expected) = (result.shape(), instruction.shape().without_layout());
        Err(named(Error::internal(format!("the handler gave {found}, the instruction is {expected}"))))
    }
}

fn unknown(target: &str) -> Error {
    Error::unimplemented(format!("no handler for the custom call target {target:?}; register one"))
}

impl fmt::Debug for CustomCallRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomCallRegistry").field(&self.handlers.keys().collect::<Vec<_>>()).finish()
    }
}
