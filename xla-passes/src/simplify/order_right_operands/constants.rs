//! Reorders constant right operands of dots and convolutions.

use std::collections::BTreeMap;

use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{Constant, Transpose};
use xla_hlo::{CompId, Computation, InstrId, Literal, Module, Op, Result, Shape};

use super::OrderRightOperands;
use super::order::{ordered, set_right, wanted};
use crate::rewrite::graph::clone_with_operands;
use crate::{Pass, PassContext};

/// Maximum size in bytes of a constant that is duplicated in another order because other users need the original.
const MAX_COPIED_BYTES: usize = 1 << 20;

/// Reorders the constants of a computation.
pub(super) fn put_in_order(module: &mut Module, id: CompId, cx: &PassContext<'_>) -> Result<()> {
    for ((constant, order), readers) in wishes(&module[id], cx) {
        let is_shared = module[id][constant].users().len() > readers.len() || module[id].root() == constant;
        let is_large = module[id][constant].shape().byte_size() > MAX_COPIED_BYTES;
        if is_shared && is_large || !cx.allow_rewrite(OrderRightOperands.name()) {
            continue;
        }
        let Some((literal, shape)) = transposed(module, id, constant, &order)? else { continue };
        let computation = module.computation_mut(id);
        let new = match is_shared {
            true => computation.add(clone_with_operands(&computation[constant], Vec::new())),
            false => constant,
        };
        computation.set_op(new, Constant { literal }.into());
        computation.set_shape(new, shape);
        readers.into_iter().for_each(|reader| set_right(computation, reader, new, &order));
    }
    Ok(())
}

/// Returns the constants that readers prefer in another order, with these readers.
fn wishes(computation: &Computation, cx: &PassContext<'_>) -> BTreeMap<(InstrId, Vec<usize>), Vec<InstrId>> {
    let mut wishes: BTreeMap<_, Vec<InstrId>> = BTreeMap::new();
    for (id, product) in computation.iter().filter(|(_, i)| matches!(i.op(), Op::Dot(_) | Op::Convolution(_))) {
        let [left, right] = [0, 1].map(|i| product.operand(i));
        let [left_is_known, right_is_known] =
            [left, right].map(|operand| matches!(computation[operand].op(), Op::Constant(_)));
        let sharded = computation[right].annotations().is_some_and(|a| a.sharding.is_some());
        // A product of two constants is folded instead.
        if right_is_known
            && !left_is_known
            && !sharded
            && let Some(order) = wanted(computation, id, cx)
        {
            wishes.entry((right, order)).or_default().push(id);
        }
    }
    wishes
}

/// Returns the value of a constant in this order, and its shape.
fn transposed(module: &Module, id: CompId, constant: InstrId, order: &[usize]) -> Result<Option<(Literal, Shape)>> {
    let instruction = &module[id][constant];
    let Op::Constant(Constant { literal }) = instruction.op() else { return Ok(None) };
    let shape = ordered(instruction.shape(), order)?;
    let op = Op::from(Transpose { permutation: order.to_vec() });
    let literal = op.rules().evaluate(&mut Evaluator::new(module), vec![literal.clone()], &shape)?;
    Ok(Some((literal, shape)))
}
