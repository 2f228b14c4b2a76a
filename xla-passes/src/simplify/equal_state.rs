//! Elements of a loop's state that are always equal.

use std::collections::HashMap;

use xla_hlo::effects::{Effects, is_async_start};
use xla_hlo::{Computation, InstrId, Instruction, Module, Op, Shape};

use crate::analysis::loops::{LoopState, element_of};
use crate::rewrite::graph;

/// Rounds in which classes of elements may fall apart; of those that still do, nothing is said.
const ROUNDS: usize = 8;

/// Constants of more bytes are only the same as themselves.
const MAX_CONSTANT_BYTES: usize = 64;

/// For each element of the state the first that has the same value before each iteration.
///
/// Elements that begin as the same value are taken to be the same, until the body is seen to make different values of
/// them: what is left at the end is so by induction. Linear time in the body for each of few iterations, and none where
/// all elements begin as different values.
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

/// For each of `n` things the first with the same key.
fn firsts<K: std::hash::Hash + Eq>(count: usize, key: impl Fn(usize) -> K) -> Vec<usize> {
    let mut first = HashMap::new();
    (0..count).map(|i| *first.entry(key(i)).or_insert(i)).collect()
}

/// Key of a value: equal keys make equal values.
#[derive(PartialEq, Eq, Hash)]
enum ValueKey<'a> {
    /// An element of the state, by its class.
    Element(usize),
    /// An operation on values of those numbers.
    Made(&'a Op, Vec<usize>, &'a Shape),
    /// Like nothing else.
    Itself(InstrId),
}

/// Numbers the values of a loop's body, equal ones alike, where elements of a class are equal.
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

/// Whether the same operation on the same operands returns the same value, and says all that it does in its attributes.
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
