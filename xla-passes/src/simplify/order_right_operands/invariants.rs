//! Reorders loop-invariant right operands of dots and convolutions.

use std::collections::{BTreeMap, HashMap};

use xla_hlo::ops::Transpose;
use xla_hlo::{CompId, InstrId, Instruction, Module, Op, Result};

use super::OrderRightOperands;
use super::order::{ordered, set_right, wanted};
use crate::analysis::loops::{self, LoopState, element_of};
use crate::analysis::trip_count::trip_count;
use crate::layout::is_identity;
use crate::{Pass, PassContext};

/// Maximum size in bytes of an array that a loop carries in a second order.
const MAX_CARRIED_BYTES: usize = 256 << 20;

/// Minimum number of iterations; below it, the transpose before the loop costs more than it saves inside.
const FEWEST_ITERATIONS: u64 = 4;

/// Reordered arrays of a computation, by original array and order.
type Ordered = BTreeMap<(InstrId, Vec<usize>), InstrId>;

/// Readers of a state element in another order.
#[derive(Default)]
struct Readers {
    products: Vec<InstrId>,
    /// Transposes before inner loops.
    transposes: Vec<InstrId>,
}

/// Elements of a loop's state, by index, with the orders that readers prefer.
type Wishes = BTreeMap<(usize, Vec<usize>), Readers>;

/// Transposes invariants before loops if dots and convolutions in the loops prefer another order.
pub(super) fn put_in_order(module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
    let callers = loops::caller_counts(module);
    let mut made: HashMap<CompId, Ordered> = HashMap::new();
    // Visits inner loops first, since transposes before them may also be invariant in outer loops.
    for caller in module.post_order() {
        for id in loops::free_loops(module, caller) {
            let Some(state) = LoopState::of(module, caller, id) else { continue };
            let computations = [caller, state.condition, state.body];
            let own = state.computations().iter().all(|c| callers.get(c) == Some(&1));
            if !own || computations.iter().any(|&c| module[c].schedule().is_some()) {
                continue;
            }
            let from_inner = made.remove(&state.body).unwrap_or_default();
            let mut wishes = wishes(module, &state, &from_inner, cx);
            wishes.retain(|_, _| cx.allow_rewrite(OrderRightOperands.name()));
            if !wishes.is_empty() {
                carry(module, &state, wishes, made.entry(caller).or_default())?;
            }
        }
    }
    Ok(())
}

fn wishes(module: &Module, state: &LoopState, from_inner: &Ordered, cx: &PassContext<'_>) -> Wishes {
    let mut wishes = Wishes::new();
    let trips = trip_count(module, state.caller, state.id);
    if trips == Some(0) {
        return wishes;
    }
    let body = &module[state.body];
    let parameter = body.parameters()[0];
    let invariant = |id: InstrId| {
        let (tuple, i) = element_of(body, id)?;
        (tuple == parameter && state.invariant[i]).then_some(i)
    };
    for ((value, order), &transpose) in from_inner {
        if let Some(i) = invariant(*value) {
            wishes.entry((i, order.clone())).or_default().transposes.push(transpose);
        }
    }
    if trips.is_some_and(|trips| trips < FEWEST_ITERATIONS) {
        return wishes;
    }
    for (id, product) in body.iter().filter(|(_, i)| matches!(i.op(), Op::Dot(_) | Op::Convolution(_))) {
        let right = product.operand(1);
        if let Some(i) = invariant(right)
            && body[right].shape().byte_size() <= MAX_CARRIED_BYTES
            && let Some(order) = wanted(body, id, cx)
        {
            wishes.entry((i, order)).or_default().products.push(id);
        }
    }
    wishes
}

/// Carries reordered arrays as further invariants and lets the readers use them.
fn carry(module: &mut Module, state: &LoopState, wishes: Wishes, made: &mut Ordered) -> Result<()> {
    let mut begins = Vec::with_capacity(wishes.len());
    for (i, order) in wishes.keys() {
        let value = state.initial_or_taken(module, *i);
        begins.push(transposed(module, state.caller, value, order, made)?);
    }
    let [_, carried] = state.carry(module, &begins);
    let body = module.computation_mut(state.body);
    for (((_, order), readers), element) in wishes.into_iter().zip(carried) {
        readers.products.into_iter().for_each(|product| set_right(body, product, element, &order));
        for transpose in readers.transposes {
            body.replace_all_uses(transpose, element);
            body.remove(transpose)?;
        }
    }
    Ok(())
}

/// Returns a value in this order. A transpose of a transpose is composed into at most one transpose.
fn transposed(module: &mut Module, id: CompId, value: InstrId, order: &[usize], made: &mut Ordered) -> Result<InstrId> {
    let computation = module.computation_mut(id);
    let (value, order) = match computation[value].op() {
        Op::Transpose(before) => {
            let order = order.iter().map(|&d| before.permutation[d]).collect();
            (computation[value].operand(0), order)
        }
        _ => (value, order.to_vec()),
    };
    if is_identity(&order) {
        return Ok(value);
    }
    if let Some(&transpose) = made.get(&(value, order.clone())) {
        return Ok(transpose);
    }
    let shape = ordered(computation[value].shape(), &order)?;
    let op = Transpose { permutation: order.clone() };
    let transpose = computation.add(Instruction::new(op.into(), shape, [value]));
    made.insert((value, order), transpose);
    Ok(transpose)
}
