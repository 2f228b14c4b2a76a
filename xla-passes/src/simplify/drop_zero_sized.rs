//! Replaces zero-sized arrays, and results that only depend on their emptiness, by constants.

use xla_hlo::effects::Effects;
use xla_hlo::ops::{Broadcast, Constant};
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Instruction, Literal, Module, Op, Result, Scalar, Shape};

use crate::analysis::loops::element_of;
use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Replaces effect-free instructions with a zero-sized result by a constant, and reductions, scatters and convolutions
/// of a zero-sized array by their result for empty input.
///
/// Dots, concatenations, pads and updates have rules in the algebraic simplifier.
pub struct DropZeroSized;

impl Pass for DropZeroSized {
    fn name(&self) -> &'static str {
        "drop-zero-sized"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let effects = Effects::of(module);
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            for instruction in module[id].post_order() {
                let Some(value) = known_value(&module[id], instruction, &effects) else { continue };
                if !cx.allow_rewrite(self.name()) {
                    return Ok(());
                }
                let computation = module.computation_mut(id);
                let value = value.write(computation, instruction)?;
                computation.replace_all_uses(instruction, value);
                graph::remove_dead(computation, instruction)?;
            }
        }
        Ok(())
    }
}

/// Known result of an instruction.
enum KnownResult {
    /// An array of zeros of the element type, possibly without elements.
    Zeros,
    /// An existing value, broadcast if it is a scalar and the result is an array.
    Value(InstrId),
}

fn known_value(computation: &Computation, id: InstrId, effects: &Effects) -> Option<KnownResult> {
    let instruction = computation.get(id)?;
    let is_wanted = !instruction.users().is_empty() || computation.root() == id;
    let shape = instruction.shape().as_array().filter(|s| s.is_static())?;
    if !is_wanted || !graph::is_free(instruction) || effects.has_effect(instruction) {
        return None;
    }
    if shape.element_count() == 0 {
        return is_replaceable(instruction).then_some(KnownResult::Zeros);
    }
    let known = match element_of(computation, id) {
        Some((tuple, index)) => of_nothing(computation, &computation[tuple], index),
        None => of_nothing(computation, instruction, 0),
    };
    known.filter(|known| match *known {
        KnownResult::Zeros => true,
        KnownResult::Value(value) => {
            let value = computation[value].shape().as_array();
            value.is_some_and(|v| v.element_type() == shape.element_type() && (v.is_scalar() || v.same_dims(shape)))
        }
    })
}

/// Returns result `index` of an operation on a zero-sized array.
fn of_nothing(computation: &Computation, instruction: &Instruction, index: usize) -> Option<KnownResult> {
    let operands = instruction.operands();
    let is_empty = |i: usize| {
        let shape = computation[operands[i]].shape().as_array();
        shape.is_some_and(|s| s.is_static() && s.element_count() == 0)
    };
    let count = operands.len() / 2;
    match instruction.op() {
        Op::Convolution(_) if is_empty(0) || is_empty(1) => Some(KnownResult::Zeros),
        Op::SelectAndScatter(_) if is_empty(1) => Some(KnownResult::Value(operands[2])),
        // Operands are the arrays, then one initial value per array.
        Op::Reduce(_) if is_empty(0) => Some(KnownResult::Value(operands[count + index])),
        // Operands are the arrays, the indices, and one update per array.
        Op::Scatter(_) if is_empty(count + 1) => Some(KnownResult::Value(operands[index])),
        _ => None,
    }
}

/// Whether an instruction without a significant result may be removed. Communication, ordering and deliberate barriers
/// are kept.
fn is_replaceable(instruction: &Instruction) -> bool {
    let stays = matches!(
        instruction.op(),
        Op::Parameter(_)
            | Op::Constant(_)
            | Op::OptBarrier(_)
            | Op::CustomCall(_)
            | Op::Domain(_)
            | Op::AddDependency(_)
            | Op::Transfer(_)
            | Op::Async(_)
            | Op::Collective(_)
    );
    !stays && instruction.opcode().start_opcodes().is_empty() && instruction.opcode().done_opcodes().is_empty()
}

impl KnownResult {
    /// Adds the value to the computation; `id` is the instruction that it replaces.
    fn write(&self, computation: &mut Computation, id: InstrId) -> Result<InstrId> {
        let shape = computation[id].shape().clone();
        let Shape::Array(array) = &shape else { return Ok(id) };
        let value = match *self {
            KnownResult::Value(value) if computation[value].shape().compatible(&shape) => return Ok(value),
            KnownResult::Value(value) => value,
            KnownResult::Zeros if array.element_count() == 0 => {
                let literal = Literal::zeros(&ArrayShape::new(array.element_type(), array.dims()))?;
                return Ok(computation.add(Instruction::new(Constant { literal }.into(), shape, [])));
            }
            KnownResult::Zeros => {
                let ty = array.element_type();
                let literal = Literal::scalar(ty, Scalar::zero(ty));
                let scalar = Shape::scalar(ty).with_default_layouts();
                computation.add(Instruction::new(Constant { literal }.into(), scalar, []))
            }
        };
        if array.is_scalar() {
            return Ok(value);
        }
        Ok(computation.add(Instruction::new(Broadcast { dimensions: Vec::new() }.into(), shape, [value])))
    }
}
