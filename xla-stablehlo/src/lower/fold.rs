//! Constant folding of size operands.

use std::collections::HashMap;

use xla_hlo::ops::{Constant, Dynamic, Op, OpTrait};
use xla_hlo::{Computation, Dynamism, ElementType, InstrId, Instruction, Literal, Module, Scalar};

/// Limits on the instructions that are evaluated for one constant, and on the elements of each.
const MAX_INSTRUCTIONS: usize = 1024;
const MAX_ELEMENTS: usize = 1 << 12;

/// Evaluates an instruction that depends only on constants and on static dimension sizes; `None` for another one.
pub(super) fn constant(computation: &Computation, root: InstrId) -> Option<Literal> {
    let mut copy = Computation::new("sizes");
    let mut copies: HashMap<InstrId, InstrId> = HashMap::new();
    let mut stack = vec![root];
    while let Some(&id) = stack.last() {
        if copies.contains_key(&id) {
            stack.pop();
            continue;
        }
        let instruction = &computation[id];
        if copies.len() > MAX_INSTRUCTIONS || instruction.shape().as_array()?.element_count() > MAX_ELEMENTS {
            return None;
        }
        if let Some(literal) = static_size(computation, instruction) {
            copies.insert(id, copy.add(Instruction::new(Constant { literal }.into(), instruction.shape().clone(), [])));
            continue;
        }
        let op = instruction.op();
        let is_simple = matches!(op, Op::Constant(_) | Op::Iota(_) | Op::Broadcast(_) | Op::Reshape(_))
            || op.has_trait(OpTrait::Foldable) && op.called_computations().is_empty();
        if !is_simple {
            return None;
        }
        let waiting: Vec<InstrId> =
            instruction.operands().iter().copied().filter(|operand| !copies.contains_key(operand)).collect();
        if waiting.is_empty() {
            let operands: Vec<InstrId> = instruction.operands().iter().map(|operand| copies[operand]).collect();
            copies.insert(id, copy.add(Instruction::new(op.clone(), instruction.shape().clone(), operands)));
        } else {
            stack.extend(waiting);
        }
    }
    copy.set_root(copies[&root]);
    let mut module = Module::new("sizes");
    let entry = module.add(copy);
    module.set_entry(entry);
    xla_hlo::eval::evaluate(&module, Vec::new()).ok()
}

/// Returns the result of `get-dimension-size` for a static dimension.
fn static_size(computation: &Computation, instruction: &Instruction) -> Option<Literal> {
    let Op::Dynamic(Dynamic::GetDimensionSize { dimension }) = instruction.op() else { return None };
    let operand = computation[instruction.operand(0)].shape().as_array()?;
    let is_static = operand.dynamism(*dimension) == Dynamism::Static;
    let size = i64::try_from(*operand.dims().get(*dimension)?).ok()?;
    is_static.then(|| Literal::scalar(ElementType::S32, Scalar::Signed(size)))
}

/// Returns the integers of a literal.
pub(super) fn integers(literal: &Literal) -> Option<Vec<i64>> {
    let count = literal.array_shape().element_count();
    (0..count).map(|i| i64::try_from(literal.get(i).as_i128()?).ok()).collect()
}
