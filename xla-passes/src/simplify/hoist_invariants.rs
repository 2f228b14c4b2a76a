//! Loop-invariant code motion (LICM): hoists computations with the same result in every iteration.

use std::collections::{HashMap, HashSet};

use xla_hlo::effects::Effects;
use xla_hlo::ops::OpTrait;
use xla_hlo::{ArrayShape, CompId, Computation, ElementType, InstrId, Instruction, Module, Op, Result, Shape};

use crate::analysis::loops::{self, LoopState, element_of};
use crate::analysis::op_cost::{EXPENSIVE, element_cost, elements};
use crate::analysis::trip_count::trip_count;
use crate::canonicalize::dead_code;
use crate::rewrite::graph::{clone_with_operands, is_free};
use crate::{Pass, PassContext};

/// Hoists values that the body or the condition of a `while` loop computes only from invariant state and constants, and
/// carries the results as further invariant state.
///
/// Only the last value of a chain of such operations is carried, if this is profitable: it must save at least a few
/// hundred operations on elements. The array must also be no larger than the arrays whose reads it saves, or take
/// expensive operations (contractions, reductions, exponentials). Generators (broadcasts, iotas) stay in the loop. A
/// loop may run zero iterations, so that hoisted values must have no effects and cannot fail. They contain no loop,
/// branch or call, so that they cost at most one iteration.
pub struct HoistInvariants;

/// Minimum work of a hoisted value, in simple operations on elements.
const WORTH: f64 = 512.0;

impl Pass for HoistInvariants {
    fn name(&self) -> &'static str {
        "hoist-invariants"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let callers = loops::caller_counts(module);
        let effects = Effects::of(module);
        // Visits inner loops first, since values hoisted out of them may also be invariant in outer loops.
        for caller in module.post_order() {
            for id in loops::free_loops(module, caller) {
                for which in 0..2 {
                    let Some(state) = LoopState::of(module, caller, id) else { break };
                    let own = state.computations().iter().all(|c| callers.get(c) == Some(&1));
                    if own && trip_count(module, caller, id) != Some(0) {
                        hoist(module, &state, which, cx, &effects)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Hoists profitable values out of the condition (`which` 0) or the body (1).
fn hoist(module: &mut Module, state: &LoopState, which: usize, cx: &PassContext<'_>, effects: &Effects) -> Result<()> {
    let inner = state.computations()[which];
    let invariants = Invariants::of(&module[inner], &state.invariant, effects);
    let mut ends = invariants.ends(&module[inner]);
    ends.retain(|_| cx.allow_rewrite(HoistInvariants.name()));
    if ends.is_empty() {
        return Ok(());
    }
    let order = invariants.needed_for(&module[inner], &ends);
    let begins = copy_out(module, state, inner, &order, &ends);
    let carried = state.carry(module, &begins);
    let computation = module.computation_mut(inner);
    for (&end, &element) in ends.iter().zip(&carried[which]) {
        computation.replace_all_uses(end, element);
    }
    dead_code::sweep(module, inner, effects)?;
    Ok(())
}

/// Values with the same result in each iteration.
struct Invariants {
    parts: HashMap<InstrId, Invariant>,
    /// Values computed from other invariants, operands first.
    made: Vec<InstrId>,
}

/// A value with the same result in each iteration.
struct Invariant {
    /// Total work for the value in simple operations, operands included.
    work: f64,
    /// Minimum number of bytes that an iteration reads to compute the value, from carried values and from expensive
    /// values that could be carried.
    bytes: usize,
    is_made: bool,
}

impl Invariants {
    fn of(computation: &Computation, invariant: &[bool], effects: &Effects) -> Invariants {
        let parameter = computation.parameters()[0];
        let mut found = Invariants { parts: HashMap::new(), made: Vec::new() };
        for id in computation.post_order() {
            let instruction = &computation[id];
            let part = match element_of(computation, id) {
                Some((tuple, i)) if tuple == parameter => invariant[i].then(|| Invariant::carried(instruction.shape())),
                _ => found.made(instruction, effects),
            };
            let Some(part) = part.filter(|_| is_free(instruction) && is_static(instruction.shape())) else { continue };
            if part.is_made {
                found.made.push(id);
            }
            found.parts.insert(id, part);
        }
        found
    }

    /// Returns the invariant of an instruction that is computed only from invariants.
    fn made(&self, instruction: &Instruction, effects: &Effects) -> Option<Invariant> {
        if let Op::Constant(constant) = instruction.op() {
            // Scalar constants are immediate operands.
            let is_scalar = constant.literal.shape().as_array().is_some_and(ArrayShape::is_scalar);
            let bytes = if is_scalar { 0 } else { instruction.shape().byte_size() };
            return Some(Invariant { work: 0.0, bytes, is_made: false });
        }
        if !instruction.op().has_trait(OpTrait::Speculatable) || effects.has_effect(instruction) {
            return None;
        }
        let distinct: HashSet<InstrId> = instruction.operands().iter().copied().collect();
        let parts = distinct.iter().map(|o| self.parts.get(o)).collect::<Option<Vec<&Invariant>>>()?;
        let each = element_cost(instruction.op(), element_type(instruction.shape()));
        let work = each * elements(instruction.shape()) as f64;
        let read = parts.iter().map(|p| p.bytes).fold(0, usize::saturating_add);
        let bytes = if each >= EXPENSIVE { instruction.shape().byte_size() } else { read };
        Some(Invariant { work: parts.iter().map(|p| p.work).sum::<f64>() + work, bytes, is_made: true })
    }

    /// Returns the values to hoist out of the loop, operands before users.
    fn ends(&self, computation: &Computation) -> Vec<InstrId> {
        let mut wanted: HashSet<InstrId> = HashSet::new();
        let mut ends = Vec::new();
        for &id in self.made.iter().rev() {
            let instruction = &computation[id];
            let leaves = |u: &InstrId| self.parts.get(u).is_none_or(|part| !part.is_made);
            if !wanted.contains(&id) && computation.root() != id && !instruction.users().iter().any(leaves) {
                continue;
            }
            let part = &self.parts[&id];
            let fits = instruction.shape().as_array().is_some_and(|a| a.byte_size() <= part.bytes);
            if fits && part.work >= WORTH {
                ends.push(id);
            } else {
                wanted.extend(instruction.operands());
            }
        }
        ends.reverse();
        ends
    }

    /// Returns the instructions that `ends` are computed from, including `ends`, operands first.
    fn needed_for(&self, computation: &Computation, ends: &[InstrId]) -> Vec<InstrId> {
        let mut needed: HashSet<InstrId> = HashSet::new();
        let mut stack = ends.to_vec();
        while let Some(id) = stack.pop() {
            if needed.insert(id) && self.parts[&id].is_made {
                stack.extend_from_slice(computation[id].operands());
            }
        }
        computation.post_order().into_iter().filter(|id| needed.contains(id)).collect()
    }
}

impl Invariant {
    fn carried(shape: &Shape) -> Invariant {
        Invariant { work: 0.0, bytes: shape.byte_size(), is_made: false }
    }
}

/// Copies instructions of `inner` into the loop's caller. Returns the copies of `ends`.
fn copy_out(
    module: &mut Module,
    state: &LoopState,
    inner: CompId,
    order: &[InstrId],
    ends: &[InstrId],
) -> Vec<InstrId> {
    let parameter = module[inner].parameters()[0];
    let mut outside: HashMap<InstrId, InstrId> = HashMap::with_capacity(order.len());
    for &id in order {
        let copy = match element_of(&module[inner], id) {
            Some((tuple, i)) if tuple == parameter => state.initial_or_taken(module, i),
            _ => {
                let instruction = &module[inner][id];
                let operands = instruction.operands().iter().map(|o| outside[o]).collect();
                let copy = clone_with_operands(instruction, operands);
                module.computation_mut(state.caller).add(copy)
            }
        };
        outside.insert(id, copy);
    }
    ends.iter().map(|end| outside[end]).collect()
}

fn is_static(shape: &Shape) -> bool {
    shape.leaves().iter().all(|(_, leaf)| leaf.as_array().is_some_and(ArrayShape::is_static))
}

/// Returns the element type of an array, or of the first array of a tuple.
fn element_type(shape: &Shape) -> ElementType {
    shape.leaves().first().and_then(|(_, leaf)| leaf.element_type()).unwrap_or(ElementType::U8)
}
