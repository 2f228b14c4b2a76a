//! Common subexpression elimination (CSE) of instructions and of embedded computations.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use xla_hlo::effects::{Effects, is_async_start};
use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, Computation, InstrId, Instruction, Module, Op, Result};

use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Merges equal instructions into the first: same operation with the same attributes, operands and shape.
///
/// Constants are compared by their bits, so that the signs of zeros and the payloads of NaNs are preserved. Combiners,
/// comparators and mapped functions that only differ in names are merged first, so that equal reductions are found.
/// Barriers, instructions with effects, and async starts and dones are not merged.
pub struct CommonSubexpressions;

impl Pass for CommonSubexpressions {
    fn name(&self) -> &'static str {
        "common-subexpressions"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        merge_computations(module, cx);
        let effects = Effects::of(module);
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            merge_in(module, id, &effects, cx)?;
        }
        Ok(())
    }
}

/// Merges equal instructions of one computation.
pub(crate) fn merge_in(module: &mut Module, id: CompId, effects: &Effects, cx: &PassContext<'_>) -> Result<()> {
    merge_instructions(module.computation_mut(id), &|i| is_mergeable(i, effects), cx)
}

fn is_mergeable(instruction: &Instruction, effects: &Effects) -> bool {
    let blocked = matches!(instruction.op(), Op::Parameter(_) | Op::OptBarrier(_)) || is_async_start(instruction.op());
    !blocked && graph::is_free(instruction) && !effects.has_effect(instruction)
}

fn merge_instructions(
    computation: &mut Computation,
    mergeable: &dyn Fn(&Instruction) -> bool,
    cx: &PassContext<'_>,
) -> Result<()> {
    let mut seen: HashMap<u64, Vec<InstrId>> = HashMap::with_capacity(computation.len());
    for id in computation.post_order() {
        let instruction = &computation[id];
        if !mergeable(instruction) {
            continue;
        }
        let same = seen.entry(hash_of(instruction)).or_default();
        match same.iter().copied().find(|&other| is_equal(&computation[other], instruction)) {
            Some(first) if cx.allow_rewrite(CommonSubexpressions.name()) => {
                computation.replace_all_uses(id, first);
                computation.remove(id)?;
            }
            Some(_) => {}
            None => same.push(id),
        }
    }
    Ok(())
}

fn hash_of(instruction: &Instruction) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_op(instruction.op(), &mut hasher);
    instruction.operands().hash(&mut hasher);
    hasher.finish()
}

/// Hashes an operation, but only the shape and both ends of a large constant.
fn hash_op(op: &Op, hasher: &mut DefaultHasher) {
    const ENDS: usize = 256;
    match op {
        Op::Constant(constant) if constant.literal.byte_len() > 2 * ENDS && constant.literal.uniform().is_none() => {
            let bytes = constant.literal.bytes();
            constant.literal.shape().hash(hasher);
            bytes[..ENDS].hash(hasher);
            bytes[bytes.len() - ENDS..].hash(hasher);
        }
        op => op.hash(hasher),
    }
}

fn is_equal(a: &Instruction, b: &Instruction) -> bool {
    a.operands() == b.operands()
        && a.shape() == b.shape()
        && is_same_op(a, b)
        && a.annotations().and_then(|a| a.sharding.as_ref()) == b.annotations().and_then(|b| b.sharding.as_ref())
}

/// Whether two operations compute the same from equal operands. For custom calls, the backend configurations must be
/// equal too.
fn is_same_op(a: &Instruction, b: &Instruction) -> bool {
    let config = |i: &Instruction| i.annotations().map(|a| a.backend_config.clone()).unwrap_or_default();
    a.op() == b.op() && (!matches!(a.op(), Op::CustomCall(_)) || config(a) == config(b))
}

/// Redirects calls of equal embedded computations to the first of them.
fn merge_computations(module: &mut Module, cx: &PassContext<'_>) {
    let mut kept: HashMap<u64, Vec<CompId>> = HashMap::new();
    let mut replacement: HashMap<CompId, CompId> = HashMap::new();
    // Callees come first, so that replacements of inner computations are known.
    for id in module.post_order() {
        if replacement.values().next().is_some() {
            let computation = &module[id];
            let calls = |op: &Op| op.called_computations().iter().any(|c| replacement.contains_key(c));
            let edits: Vec<(InstrId, Op)> = computation
                .iter()
                .filter(|(_, i)| i.op().call_context() == CallContext::Embedded && calls(i.op()))
                .filter(|_| cx.allow_rewrite(CommonSubexpressions.name()))
                .map(|(i, instruction)| (i, instruction.op().clone()))
                .collect();
            for (i, mut op) in edits {
                op.map_called_computations(&mut |c| replacement.get(&c).copied().unwrap_or(c));
                module.computation_mut(id).set_op(i, op);
            }
        }
        if id == module.entry_id() {
            continue;
        }
        let same = kept.entry(structure_hash(&module[id])).or_default();
        match same.iter().copied().find(|&other| computations_equal(&module[other], &module[id])) {
            Some(first) => {
                replacement.insert(id, first);
            }
            None => same.push(id),
        }
    }
}

/// Hashes a computation such that collisions of computations for which [`computations_equal`] is false are rare.
/// Thousands of branches with equal operations but different constants must not be compared pairwise.
pub fn structure_hash(computation: &Computation) -> u64 {
    let mut hasher = DefaultHasher::new();
    let order = computation.post_order();
    let mut places: HashMap<InstrId, usize> = HashMap::with_capacity(order.len());
    for (place, &id) in order.iter().enumerate() {
        let instruction = &computation[id];
        hash_op(instruction.op(), &mut hasher);
        instruction.shape().hash(&mut hasher);
        instruction.operands().iter().for_each(|operand| places.get(operand).hash(&mut hasher));
        places.insert(id, place);
    }
    hasher.finish()
}

/// Whether two computations are equal except for names, metadata and the order of independent instructions.
pub fn computations_equal(a: &Computation, b: &Computation) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut matched: HashMap<InstrId, InstrId> = HashMap::with_capacity(a.len());
    let (order_a, order_b) = (a.post_order(), b.post_order());
    for (&x, &y) in order_a.iter().zip(&order_b) {
        let (left, right) = (&a[x], &b[y]);
        let same_operands = left.operands().len() == right.operands().len()
            && left.operands().iter().zip(right.operands()).all(|(l, r)| matched.get(l) == Some(r));
        let free = graph::is_free(left) && graph::is_free(right);
        if !same_operands || !free || !is_same_op(left, right) || left.shape() != right.shape() {
            return false;
        }
        matched.insert(x, y);
    }
    matched.get(&a.root()) == Some(&b.root())
}
