//! Invariants of loops on the right of dots and convolutions, in the order that these want.

use std::collections::{BTreeMap, HashMap};

use xla_hlo::ops::Transpose;
use xla_hlo::{CompId, InstrId, Instruction, Module, Op, Result};

use super::OrderRightOperands;
use super::order::{ordered, set_right, wanted};
use crate::analysis::loops::{self, LoopState, element_of};
use crate::analysis::trip_count::trip_count;
use crate::layout::is_identity;
use crate::{Pass, PassContext};

/// Largest array that a loop carries in a second order.
const MAX_CARRIED_BYTES: usize = 256 << 20;

/// Iterations below which a transpose before the loop costs more than it saves inside.
const FEWEST_ITERATIONS: u64 = 4;

/// Arrays in another order that a computation has: whose, which order, and where.
type Ordered = BTreeMap<(InstrId, Vec<usize>), InstrId>;

/// Those who want an element of a loop's state in another order.
#[derive(Default)]
struct Readers {
    products: Vec<InstrId>,
    /// Transposes before inner loops.
    transposes: Vec<InstrId>,
}

/// Elements of a loop's state, by number, in the orders that are wanted of them.
type Wishes = BTreeMap<(usize, Vec<usize>), Readers>;

/// Transposes, before loops, the invariants that dots and convolutions in them want in another order.
pub(super) fn put_in_order(module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
    let callers = loops::caller_counts(module);
    let mut made: HashMap<CompId, Ordered> = HashMap::new();
    // Inner loops first: what is put in front of them may leave outer ones, too.
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

/// Carries what is wanted as further invariants, and gives it to those who want it.
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

/// A value in that order. Of what is a transpose already, it is one transpose, or none.
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
