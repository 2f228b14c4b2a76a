//! Elements of a loop's state that are always equal.

use std::collections::HashMap;

use xla_hlo::effects::{Effects, is_async_start};
use xla_hlo::{Computation, InstrId, Instruction, Module, Op, Shape};

use crate::analysis::loops::{LoopState, element_of};
use crate::rewrite::graph;

/// Maximum number of refinements of the equality classes. If they still change then, no elements are reported as equal.
const ROUNDS: usize = 8;

/// Maximum size in bytes of constants that are compared by content; larger ones are equal only to themselves.
const MAX_CONSTANT_BYTES: usize = 64;

/// Maps each element of the state to the first element with the same value before each iteration.
///
/// Elements with the same initial value are assumed to be equal until the body is found to compute different values for
/// them. Equality at the fixpoint follows by induction. The time is linear in the body for each of few iterations, and
/// zero if all initial values differ.
pub(crate) fn representatives(module: &Module, state: &LoopState, effects: &Effects) -> Vec<usize> {
    let count = state.elements.len();
    let itself: Vec<usize> = (0..count).collect();
    let begins = |i| (state.initial(module, i), &state.elements[i]);
    let mut class = firsts(count, |i| match begins(i) {
        (Some(initial), shape) => Ok((initial, shape)),
        (None, _) => Err(i),
    });
    let body = &module[state.body];
    let next = body[body.root()].operands();
    for _ in 0..ROUNDS {
        if class == itself {
            return itself;
        }
        let values = numbers(body, &class, effects);
        let split = firsts(count, |i| (class[i], values[&next[i]]));
        if split == class {
            return class;
        }
        class = split;
    }
    itself
}

/// Maps each of `count` items to the first item with the same key.
fn firsts<K: std::hash::Hash + Eq>(count: usize, key: impl Fn(usize) -> K) -> Vec<usize> {
    let mut first = HashMap::new();
    (0..count).map(|i| *first.entry(key(i)).or_insert(i)).collect()
}

/// Value number key: equal keys imply equal values.
#[derive(PartialEq, Eq, Hash)]
enum ValueKey<'a> {
    /// An element of the state, represented by its class.
    Element(usize),
    /// An operation on values with these numbers.
    Made(&'a Op, Vec<usize>, &'a Shape),
    /// Equal only to itself.
    Itself(InstrId),
}

/// Numbers the values of a loop's body under the assumption that elements of a class are equal; equal values get equal
/// numbers.
fn numbers(body: &Computation, class: &[usize], effects: &Effects) -> HashMap<InstrId, usize> {
    let parameter = body.parameters()[0];
    let mut numbers: HashMap<InstrId, usize> = HashMap::with_capacity(body.len());
    let mut seen: HashMap<ValueKey<'_>, usize> = HashMap::with_capacity(body.len());
    for id in body.post_order() {
        let instruction = &body[id];
        let key = match element_of(body, id) {
            Some((tuple, i)) if tuple == parameter => ValueKey::Element(class[i]),
            _ if is_function(instruction, effects) => {
                let operands = instruction.operands().iter().map(|o| numbers[o]).collect();
                ValueKey::Made(instruction.op(), operands, instruction.shape())
            }
            _ => ValueKey::Itself(id),
        };
        let fresh = seen.len();
        numbers.insert(id, *seen.entry(key).or_insert(fresh));
    }
    numbers
}

/// Whether the operation is a pure function of its operands and attributes.
fn is_function(instruction: &Instruction, effects: &Effects) -> bool {
    let plain = match instruction.op() {
        Op::Constant(constant) => {
            constant.literal.as_splat().is_some() || constant.literal.byte_len() <= MAX_CONSTANT_BYTES
        }
        Op::Parameter(_) | Op::OptBarrier(_) | Op::CustomCall(_) => false,
        op => !is_async_start(op),
    };
    plain && graph::is_free(instruction) && !effects.has_effect(instruction)
}
