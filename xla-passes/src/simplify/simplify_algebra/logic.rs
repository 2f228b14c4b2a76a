//! Rules for comparisons, selections and unary operations.

use xla_hlo::ops::{Binary, BinaryOp, Compare, CompareDirection, Select, Unary, UnaryOp};
use xla_hlo::{ElementType, InstrId, Op, Scalar};

use super::arithmetic::has_negatives;
use super::convert_moves::movement_of_widening;
use super::draft::{Draft, DraftValue};
use super::{Rule, rules};

pub const UNARY: &[Rule] = rules![involution, abs_of_abs, odd_of_negation, not_of_compare];

pub const COMPARE: &[Rule] = rules![compare_of_itself, compare_with_least_unsigned];

pub const SELECT: &[Rule] =
    rules![select_by_constant, select_of_same, select_by_negation, select_of_truth_values, movement_of_widening];

fn unary<'c>(cx: &Draft<'c>, id: InstrId) -> Option<UnaryOp> {
    match cx.op(id) {
        Op::Unary(unary) => Some(unary.op),
        _ => None,
    }
}

/// `-(-x)` = `x`; `not(not(x))` = `x`.
fn involution(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let op = unary(cx, id)?;
    let own_inverse = op == UnaryOp::Not || op == UnaryOp::Negate && has_negatives(cx, id);
    let own_inverse = own_inverse && unary(cx, inner) == Some(op);
    own_inverse.then(|| cx.operand(inner, 0).into())
}

/// `abs(abs(x))` = `abs(x)`; `abs(-x)` = `abs(x)`.
fn abs_of_abs(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    if unary(cx, id)? != UnaryOp::Abs {
        return None;
    }
    match unary(cx, inner)? {
        UnaryOp::Abs => Some(inner.into()),
        UnaryOp::Negate if has_negatives(cx, id) => cx.same(id, [cx.operand(inner, 0).into()]),
        _ => None,
    }
}

/// `f(-x)` = `-f(x)`, and `f(x * -c)` = `-f(x * c)` for a constant `c` and an odd function `f` of floats. The negation
/// moves towards the root, where a sum may absorb it, and `f(x)` often exists already.
fn odd_of_negation(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    use UnaryOp::{Asin, Asinh, Atan, Atanh, Cbrt, Erf, Sine, Sinh, Tan, Tanh};
    let inner = cx.operand(id, 0);
    let is_odd = matches!(unary(cx, id)?, Asin | Asinh | Atan | Atanh | Cbrt | Erf | Sine | Sinh | Tan | Tanh);
    let is_known =
        matches!(cx.element_type(id)?, ElementType::BF16 | ElementType::F16 | ElementType::F32 | ElementType::F64);
    if !is_odd || !is_known {
        return None;
    }
    let positive: DraftValue = match cx.op(inner) {
        Op::Unary(Unary { op: UnaryOp::Negate, .. }) => cx.operand(inner, 0).into(),
        Op::Binary(Binary { op: BinaryOp::Multiply }) if cx.is_used_once(inner) => {
            let c = cx.float_splat(cx.operand(inner, 1)).filter(|c| c.is_sign_negative() && !c.is_nan())?;
            let positive = cx.splat_of(cx.shape(inner)?, Scalar::Float(-c));
            cx.same(inner, [cx.operand(inner, 0).into(), positive])?
        }
        _ => return None,
    };
    let value = cx.same(id, [positive])?;
    Some(cx.add(Unary::from(UnaryOp::Negate), cx.shape(id)?.clone(), [value]))
}

/// `not(x == y)` = `x != y` and vice versa; for integers also `not(x < y)` = `x >= y` and similar.
fn not_of_compare(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    use CompareDirection::*;
    let inner = cx.operand(id, 0);
    let Op::Compare(compare) = cx.op(inner) else { return None };
    if unary(cx, id)? != UnaryOp::Not {
        return None;
    }
    let ordered = cx.element_type(cx.operand(inner, 0)).is_some_and(|ty| ty.is_integer() || ty == ElementType::Pred);
    let direction = match compare.direction {
        Eq => Ne,
        Ne => Eq,
        Lt if ordered => Ge,
        Le if ordered => Gt,
        Gt if ordered => Le,
        Ge if ordered => Lt,
        Lt | Le | Gt | Ge => return None,
    };
    let operands = [cx.operand(inner, 0).into(), cx.operand(inner, 1).into()];
    Some(cx.add(Compare { direction, order: compare.order }, cx.shape(id)?.clone(), operands))
}

/// `x == x` is true and `x < x` is false, for integers and booleans.
fn compare_of_itself(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    use CompareDirection::*;
    let Op::Compare(compare) = cx.op(id) else { return None };
    let x = cx.operand(id, 0);
    let ty = cx.element_type(x)?;
    if x != cx.operand(id, 1) || !(ty.is_integer() || ty == ElementType::Pred) {
        return None;
    }
    let truth = matches!(compare.direction, Eq | Ge | Le);
    Some(cx.splat_of(cx.shape(id)?, Scalar::Pred(truth)))
}

/// `x < 0` is false and `x >= 0` is true, for unsigned integers.
fn compare_with_least_unsigned(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Compare(compare) = cx.op(id) else { return None };
    let Scalar::Unsigned(0) = cx.splat(cx.operand(id, 1))? else { return None };
    match compare.direction {
        CompareDirection::Lt => Some(cx.splat_of(cx.shape(id)?, Scalar::Pred(false))),
        CompareDirection::Ge => Some(cx.splat_of(cx.shape(id)?, Scalar::Pred(true))),
        CompareDirection::Eq | CompareDirection::Ne | CompareDirection::Gt | CompareDirection::Le => None,
    }
}

/// `select(true, x, y)` = `x`; `select(false, x, y)` = `y`.
fn select_by_constant(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Scalar::Pred(chosen) = cx.splat(cx.operand(id, 0))? else { return None };
    Some(cx.operand(id, if chosen { 1 } else { 2 }).into())
}

/// `select(p, x, x)` = `x`.
fn select_of_same(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    (cx.operand(id, 1) == cx.operand(id, 2)).then(|| cx.operand(id, 1).into())
}

/// `select(not(p), x, y)` = `select(p, y, x)`.
fn select_by_negation(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let predicate = cx.operand(id, 0);
    let Op::Unary(Unary { op: UnaryOp::Not, .. }) = cx.op(predicate) else { return None };
    let operands = [cx.operand(predicate, 0).into(), cx.operand(id, 2).into(), cx.operand(id, 1).into()];
    Some(cx.add(Select, cx.shape(id)?.clone(), operands))
}

/// `select(p, true, false)` = `p`; `select(p, false, true)` = `not(p)`.
fn select_of_truth_values(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let predicate = cx.operand(id, 0);
    if cx.dims(predicate) != cx.dims(id) {
        return None;
    }
    match (cx.splat(cx.operand(id, 1))?, cx.splat(cx.operand(id, 2))?) {
        (Scalar::Pred(true), Scalar::Pred(false)) => Some(predicate.into()),
        (Scalar::Pred(false), Scalar::Pred(true)) => {
            Some(cx.add(Unary::from(UnaryOp::Not), cx.shape(id)?.clone(), [predicate.into()]))
        }
        _ => None,
    }
}
