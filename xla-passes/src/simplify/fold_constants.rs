//! Constant folding: evaluates operations on constants at compile time.

use xla_hlo::effects::Effects;
use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{Constant, OpTrait};
use xla_hlo::{CompId, Computation, InstrId, Instruction, Literal, Module, Op, Result};

use super::evaluation_budget::EvaluationBudget;
use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Maximum size in bytes of results that are larger than their operands.
const MAX_GROWN_BYTES: usize = 64 << 10;

/// Maximum number of elements of folded results that are computed from generators. Up to this size, an array is read as
/// fast as it is computed.
pub(crate) const MAX_MADE_ELEMENTS: usize = 1024;

/// Maximum number of visited elements and operations on them per folded instruction.
const MAX_WORK: u64 = 1 << 18;

/// Replaces operations on constants by their results.
///
/// Results stay small: at most 64 KiB, or no larger than the constants from which they are computed. Broadcasts of one
/// element and iotas are kept, since a kernel generates their elements without memory reads. Values computed from them
/// are folded up to 1024 elements. Loops and branches are never evaluated, nor is anything beyond the
/// `EvaluationBudget`.
pub struct FoldConstants;

impl Pass for FoldConstants {
    fn name(&self) -> &'static str {
        "fold-constants"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let effects = Effects::of(module);
        let mut budget = EvaluationBudget::new();
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            for instruction in module[id].post_order() {
                if let Some(literal) = folded(module, id, instruction, &effects, &mut budget)
                    && cx.allow_rewrite(self.name())
                {
                    replace(module, id, instruction, literal)?;
                }
            }
        }
        Ok(())
    }
}

/// Replaces an instruction by a constant.
pub(crate) fn replace(module: &mut Module, id: CompId, old: InstrId, literal: Literal) -> Result<()> {
    let computation = module.computation_mut(id);
    let shape = computation[old].shape().clone();
    let constant = computation.add(Instruction::new(Constant { literal }.into(), shape, []));
    computation.replace_all_uses(old, constant);
    computation.remove(old)
}

fn folded(
    module: &Module,
    computation: CompId,
    id: InstrId,
    effects: &Effects,
    budget: &mut EvaluationBudget,
) -> Option<Literal> {
    let computation = &module[computation];
    let instruction = &computation[id];
    if instruction.operands().is_empty()
        || !instruction.op().has_trait(OpTrait::Foldable)
        || !graph::is_free(instruction)
    {
        return None;
    }
    let shape = instruction.shape();
    let elements = shape.as_array().filter(|s| s.is_static())?.element_count();
    // Most instructions have an unknown operand, so this checks all operands before it evaluates any.
    if !instruction.operands().iter().all(|&operand| is_known(computation, operand, elements)) {
        return None;
    }
    let bytes = instruction.operands().iter().map(|&operand| computation[operand].shape().byte_size()).sum::<usize>();
    let grows = shape.byte_size() > bytes.max(MAX_GROWN_BYTES);
    if grows || effects.has_effect(instruction) || !budget.spend(module, computation, id, MAX_WORK) {
        return None;
    }
    let operands = instruction.operands().iter().map(|&operand| value(module, computation, operand));
    let operands = operands.collect::<Option<Vec<Literal>>>()?;
    match instruction.op().rules().evaluate(&mut Evaluator::new(module), operands, shape) {
        Ok(literal) => Some(literal),
        // Not an error of the program: it may never run this operation, and reports the error itself if it does.
        Err(error) => {
            tracing::debug!(name = instruction.name(), %error, "not folded");
            None
        }
    }
}

/// Whether the value is a constant, or generated if the result has few elements.
fn is_known(computation: &Computation, id: InstrId, elements: usize) -> bool {
    let instruction = &computation[id];
    let array = instruction.shape().as_array().filter(|s| s.is_static());
    let few = array.is_some_and(|array| elements.max(array.element_count()) <= MAX_MADE_ELEMENTS);
    match instruction.op() {
        Op::Constant(_) => true,
        Op::Iota(_) => few,
        Op::Broadcast(_) => few && matches!(computation[instruction.operand(0)].op(), Op::Constant(_)),
        _ => false,
    }
}

/// Returns the value of an instruction that is computed from constants or generators.
pub(crate) fn value(module: &Module, computation: &Computation, id: InstrId) -> Option<Literal> {
    let instruction = &computation[id];
    if let Op::Constant(constant) = instruction.op() {
        return Some(constant.literal.clone());
    }
    let operands = instruction.operands().iter().map(|&operand| value(module, computation, operand));
    let operands = operands.collect::<Option<Vec<Literal>>>()?;
    instruction.op().rules().evaluate(&mut Evaluator::new(module), operands, instruction.shape()).ok()
}
