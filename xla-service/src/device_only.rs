//! Rejects, at compile time, transfers to the host and, in modules for one device, collectives among several.

use xla_hlo::{Error, Module, Op, Result, ResultExt};

/// Returns the error for operations that send or receive data.
pub(crate) fn refused(op: &Op) -> Error {
    Error::unimplemented(format!(
        "{} needs a queue to the host or a link between devices, which no platform here has",
        op.opcode()
    ))
}

/// Rejects transfers, and collectives of a module for one device that need others, in all computations that the entry
/// reaches.
pub(crate) fn refuse(module: &Module) -> Result<()> {
    let is_alone = module.is_for_one_device();
    for id in module.reachable() {
        let computation = &module[id];
        for (instruction, found) in computation.iter() {
            let checked = match found.op() {
                Op::Transfer(_) => Err(refused(found.op())),
                Op::Collective(op) if is_alone => {
                    op.on_one_device(module, &computation.operand_shapes(instruction)).map(drop)
                }
                _ => Ok(()),
            };
            checked.context(|| format!("%{} of {}", found.name(), computation.name()))?;
        }
    }
    Ok(())
}
