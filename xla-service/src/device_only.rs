//! Refuses, when compiling, operations that need more than one device and its memory.

use std::collections::HashSet;

use xla_hlo::{Error, Module, Op, Result, ResultExt};

/// The error for data that comes from or goes to elsewhere.
pub(crate) fn refused(op: &Op) -> Error {
    Error::unimplemented(format!(
        "{} needs a queue to the host or a link between devices, and no platform here has one",
        op.opcode()
    ))
}

/// Refuses transfers, and collectives among several devices, in every computation that the entry reaches.
pub(crate) fn refuse(module: &Module) -> Result<()> {
    let mut reached = HashSet::from([module.entry_id()]);
    let mut stack = vec![module.entry_id()];
    while let Some(id) = stack.pop() {
        let computation = &module[id];
        for (instruction, found) in computation.iter() {
            let checked = match found.op() {
                Op::Transfer(_) => Err(refused(found.op())),
                Op::Collective(op) => op.on_one_device(module, &computation.operand_shapes(instruction)).map(drop),
                _ => Ok(()),
            };
            checked.context(|| format!("%{} of {}", found.name(), computation.name()))?;
        }
        stack.extend(module.callees(id).into_iter().filter(|&callee| reached.insert(callee)));
    }
    Ok(())
}
