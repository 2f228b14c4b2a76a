//! Conversion of large splats to broadcasts of one element, because protobuf has no compact form for them.

use std::borrow::Cow;

use crate::ops::{Broadcast, Constant};
use crate::{ArrayShape, CompId, Error, InstrId, Instruction, Literal, Module, Op, Result};

/// Maximum size in bytes of a splat that is written as a constant and thus round-trips; larger ones become broadcasts.
const SMALL: usize = 1 << 20;

/// Maximum size of a protobuf message.
const MOST_BYTES: usize = i32::MAX as usize;

/// Replaces each large splat of the module by a broadcast. Fails if the remaining constants do not fit in a message.
pub(super) fn broadcast(module: &Module) -> Result<Cow<'_, Module>> {
    let mut found: Vec<(CompId, InstrId)> = Vec::new();
    let mut bytes = 0usize;
    for (id, computation) in module.iter() {
        for (constant, instruction) in computation.iter() {
            let Op::Constant(Constant { literal }) = instruction.op() else { continue };
            if literal.as_splat().is_some() && literal.byte_len() > SMALL {
                found.push((id, constant));
            } else {
                bytes = literal.leaves().iter().fold(bytes, |bytes, leaf| bytes.saturating_add(leaf.byte_len()));
            }
        }
    }
    if bytes > MOST_BYTES {
        return Err(Error::resource_exhausted(format!(
            "its constants have {bytes} bytes, protobuf messages at most {MOST_BYTES}; make large arrays parameters"
        )));
    }
    if found.is_empty() {
        return Ok(Cow::Borrowed(module));
    }
    let mut module = module.clone();
    for (id, constant) in found {
        replace(&mut module, id, constant);
    }
    Ok(Cow::Owned(module))
}

/// Replaces the splat by a broadcast of a scalar constant.
fn replace(module: &mut Module, id: CompId, constant: InstrId) {
    let computation = module.computation_mut(id);
    let Op::Constant(Constant { literal }) = computation[constant].op() else { return };
    let element = Literal::scalar(literal.array_shape().element_type(), literal.get(0));
    let shape = ArrayShape::scalar(element.array_shape().element_type()).into();
    let name = format!("{}.element", computation[constant].name());
    let scalar = Instruction::new(Constant { literal: element }.into(), shape, []).with_name(name);
    let schedule = computation.schedule().map(<[InstrId]>::to_vec);
    let scalar = computation.add(scalar);
    computation.set_op(constant, Broadcast { dimensions: Vec::new() }.into());
    computation.set_operands(constant, vec![scalar]);
    if let Some(mut schedule) = schedule {
        let at = schedule.iter().position(|&i| i == constant).unwrap_or(0);
        schedule.insert(at, scalar);
        computation.set_schedule(Some(schedule));
    }
}
