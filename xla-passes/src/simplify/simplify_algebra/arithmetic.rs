//! Rules for binary operations.

use xla_hlo::ops::{Binary, BinaryOp, Unary, UnaryOp};
use xla_hlo::{ElementKind, ElementType, InstrId, Op, Scalar};

use super::draft::{Draft, DraftValue};
use super::{Rule, rules};

pub const BINARY: &[Rule] = rules![
    constant_to_the_right,
    add_of_zero,
    subtract_of_zero,
    subtract_of_itself,
    multiply_by_one,
    multiply_by_zero,
    multiply_by_minus_one,
    divide_by_one,
    divide_by_power_of_two,
    power_of_small_exponent,
    add_of_negation,
    subtract_of_negation,
    multiply_of_negation,
    extremum_of_itself,
    extremum_with_end_of_range,
    logic_with_itself,
    logic_with_constant,
];

/// Returns the operands if the operation is the wanted one.
fn operands_of(cx: &Draft<'_>, id: InstrId, wanted: BinaryOp) -> Option<(InstrId, InstrId)> {
    match cx.op(id) {
        Op::Binary(Binary { op }) if *op == wanted => Some((cx.operand(id, 0), cx.operand(id, 1))),
        _ => None,
    }
}

fn binary_op(cx: &Draft<'_>, id: InstrId) -> Option<BinaryOp> {
    match cx.op(id) {
        Op::Binary(Binary { op }) => Some(*op),
        _ => None,
    }
}

fn is_float(cx: &Draft<'_>, id: InstrId) -> bool {
    cx.element_type(id).is_some_and(ElementType::is_float)
}

fn is_integer(cx: &Draft<'_>, id: InstrId) -> bool {
    cx.element_type(id).is_some_and(ElementType::is_integer)
}

/// Whether all elements are equal to this number, for integers and real floats.
fn is_number(cx: &Draft<'_>, id: InstrId, number: i64) -> bool {
    cx.integer_splat(id) == Some(i128::from(number)) || cx.float_splat(id) == Some(number as f64)
}

fn is_negation(cx: &Draft<'_>, id: InstrId) -> Option<InstrId> {
    match cx.op(id) {
        Op::Unary(Unary { op: UnaryOp::Negate, .. }) if has_negatives(cx, id) => Some(cx.operand(id, 0)),
        _ => None,
    }
}

/// Whether two negations cancel. They do not in floats without a sign, where a negation yields NaN.
pub(super) fn has_negatives(cx: &Draft<'_>, id: InstrId) -> bool {
    cx.element_type(id).is_some_and(|ty| ty.is_signed() || !ty.is_float())
}

fn negate(cx: &mut Draft<'_>, x: InstrId) -> Option<DraftValue> {
    let shape = cx.shape(x)?.clone();
    Some(cx.add(Unary::from(UnaryOp::Negate), shape, [x.into()]))
}

/// `f(c, x)` = `f(x, c)` for a constant `c` and a commutative `f`, so that other rules check one operand only.
fn constant_to_the_right(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    use BinaryOp::*;
    let commutes = matches!(binary_op(cx, id)?, Add | Multiply | Maximum | Minimum | And | Or | Xor | Mulhi);
    let (a, b) = (cx.operand(id, 0), cx.operand(id, 1));
    (commutes && cx.splat(a).is_some() && cx.splat(b).is_none()).then(|| cx.same(id, [b.into(), a.into()]))?
}

/// `x + 0` = `x` for integers, `x + -0` = `x` for floats (`-0 + 0` is `0`).
fn add_of_zero(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Add)?;
    let zero = match cx.splat(y)? {
        Scalar::Float(v) => v == 0.0 && v.is_sign_negative(),
        Scalar::Signed(v) => v == 0,
        Scalar::Unsigned(v) => v == 0,
        Scalar::Pred(_) | Scalar::Complex(..) => false,
    };
    zero.then_some(x.into())
}

/// `x - 0` = `x` (for floats: `-0 - 0` is `-0`).
fn subtract_of_zero(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Subtract)?;
    let zero = match cx.splat(y)? {
        Scalar::Float(v) => v == 0.0 && v.is_sign_positive(),
        other => other.as_i128() == Some(0),
    };
    zero.then_some(x.into())
}

/// `x - x` = `0` for integers.
fn subtract_of_itself(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Subtract)?;
    let shape = cx.shape(id)?;
    (x == y && is_integer(cx, id)).then(|| cx.splat_of(shape, Scalar::zero(shape.element_type())))
}

/// `x * 1` = `x`.
fn multiply_by_one(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Multiply)?;
    is_number(cx, y, 1).then_some(x.into())
}

/// `x * 0` = `0` for integers.
fn multiply_by_zero(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (_, y) = operands_of(cx, id, BinaryOp::Multiply)?;
    (is_integer(cx, id) && cx.integer_splat(y) == Some(0)).then_some(y.into())
}

/// `x * -1` = `-x`.
fn multiply_by_minus_one(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Multiply)?;
    is_number(cx, y, -1).then(|| negate(cx, x))?
}

/// `x / 1` = `x`.
fn divide_by_one(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Divide)?;
    is_number(cx, y, 1).then_some(x.into())
}

/// `x / c` = `x * (1/c)` for floats, where `c` is a power of two whose inverse is exact and normal.
fn divide_by_power_of_two(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Divide)?;
    let ty = cx.element_type(id)?;
    let (c, shape) = (cx.float_splat(y)?, cx.shape(id)?);
    let exponent = c.abs().log2().round();
    if c.abs() != exponent.exp2() || exponent.abs() > largest_exponent(ty)? {
        return None;
    }
    let inverse = cx.splat_of(shape, Scalar::Float(c.recip()));
    cx.binary(BinaryOp::Multiply, id, x, inverse)
}

/// Returns the largest exponent for which a power of two and its inverse are normal in that type.
fn largest_exponent(ty: ElementType) -> Option<f64> {
    match ty {
        ElementType::F64 => Some(1022.0),
        ElementType::F32 | ElementType::BF16 => Some(126.0),
        ElementType::F16 => Some(14.0),
        _ => None,
    }
}

/// `power(x, 1)` = `x`; `power(x, 0)` = `1`; `power(x, 2)` = `x * x`; `power(x, 3)` = `x * x * x` for f32 and f64
/// (which rounds twice); `power(x, -1)` = `1 / x` for floats. Not for complex numbers.
fn power_of_small_exponent(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Power)?;
    let shape = cx.shape(id)?;
    let one = Scalar::from_i64(shape.element_type(), 1);
    let number = |n: i64| is_number(cx, y, n);
    if number(1) {
        return Some(x.into());
    }
    if number(0) {
        return Some(cx.splat_of(shape, one));
    }
    let wide = matches!(shape.element_type(), ElementType::F32 | ElementType::F64);
    if number(2) || (number(3) && wide) {
        let square = cx.binary(BinaryOp::Multiply, id, x, x)?;
        return if is_number(cx, y, 2) { Some(square) } else { cx.binary(BinaryOp::Multiply, id, square, x) };
    }
    if number(-1) && is_float(cx, id) {
        let one = cx.splat_of(shape, one);
        return cx.binary(BinaryOp::Divide, id, one, x);
    }
    None
}

/// `x + -y` = `x - y`.
fn add_of_negation(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Add)?;
    match (is_negation(cx, x), is_negation(cx, y)) {
        (_, Some(inner)) => cx.binary(BinaryOp::Subtract, id, x, inner),
        (Some(inner), None) => cx.binary(BinaryOp::Subtract, id, y, inner),
        (None, None) => None,
    }
}

/// `x - -y` = `x + y`.
fn subtract_of_negation(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, y) = operands_of(cx, id, BinaryOp::Subtract)?;
    cx.binary(BinaryOp::Add, id, x, is_negation(cx, y)?)
}

/// `-x * -y` = `x * y`, `-x / -y` = `x / y` for floats, and `-x * c` = `x * -c` for a constant `c`.
fn multiply_of_negation(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let op = binary_op(cx, id)?;
    let allowed = op == BinaryOp::Multiply || (op == BinaryOp::Divide && is_float(cx, id));
    let (x, y) = (cx.operand(id, 0), cx.operand(id, 1));
    let inner = is_negation(cx, x).filter(|_| allowed)?;
    if let Some(other) = is_negation(cx, y) {
        return cx.binary(op, id, inner, other);
    }
    let (c, shape) = (cx.float_splat(y)?, cx.shape(id)?);
    let flipped = cx.splat_of(shape, Scalar::Float(-c));
    cx.binary(op, id, inner, flipped)
}

/// `maximum(x, x)` = `minimum(x, x)` = `x`.
fn extremum_of_itself(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let extremum = matches!(binary_op(cx, id)?, BinaryOp::Maximum | BinaryOp::Minimum);
    (extremum && cx.operand(id, 0) == cx.operand(id, 1)).then(|| cx.operand(id, 0).into())
}

/// `maximum(x, least)` = `x` and `minimum(x, greatest)` = `x`, for floats only with infinite ends. Both keep NaN.
fn extremum_with_end_of_range(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let op = binary_op(cx, id)?;
    let (x, y) = (cx.operand(id, 0), cx.operand(id, 1));
    let ty = cx.element_type(id)?;
    let (least, greatest) = ends(ty);
    let value = cx.splat(y)?;
    let identity = match op {
        BinaryOp::Maximum => least?,
        BinaryOp::Minimum => greatest?,
        _ => return None,
    };
    (value == identity).then_some(x.into())
}

/// Returns the least and the greatest value of a type; `None` for floats whose extreme values are finite.
fn ends(ty: ElementType) -> (Option<Scalar>, Option<Scalar>) {
    let bits = ty.bit_width() as u32;
    let has = |v: f64| Some(Scalar::Float(v)).filter(|s| s.rounded(ty) == *s);
    match ty.kind() {
        ElementKind::Pred => (Some(Scalar::Pred(false)), Some(Scalar::Pred(true))),
        ElementKind::Signed => {
            (Some(Scalar::Signed(i64::MIN >> (64 - bits))), Some(Scalar::Signed(i64::MAX >> (64 - bits))))
        }
        ElementKind::Unsigned => (Some(Scalar::Unsigned(0)), Some(Scalar::Unsigned(u64::MAX >> (64 - bits)))),
        ElementKind::Float => (has(f64::NEG_INFINITY), has(f64::INFINITY)),
        ElementKind::Complex => (None, None),
    }
}

/// `x & x` = `x | x` = `x`; `x ^ x` = `0`.
fn logic_with_itself(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (op, x) = (binary_op(cx, id)?, cx.operand(id, 0));
    if x != cx.operand(id, 1) {
        return None;
    }
    let shape = cx.shape(id)?;
    match op {
        BinaryOp::And | BinaryOp::Or => Some(x.into()),
        BinaryOp::Xor => Some(cx.splat_of(shape, Scalar::zero(shape.element_type()))),
        _ => None,
    }
}

/// `x & ones` = `x`, `x & 0` = `0`, `x | 0` = `x`, `x | ones` = `ones`, `x ^ 0` = `x`; shifts by 0 = `x`.
fn logic_with_constant(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    use BinaryOp::*;
    let (op, x, y) = (binary_op(cx, id)?, cx.operand(id, 0), cx.operand(id, 1));
    let value = cx.splat(y)?;
    let zero = value.as_i128()? == 0;
    let ones = match value {
        Scalar::Pred(p) => p,
        Scalar::Signed(v) => v == -1,
        Scalar::Unsigned(_) => Some(value) == ends(cx.element_type(id)?).1,
        Scalar::Float(_) | Scalar::Complex(..) => false,
    };
    match op {
        And if ones => Some(x.into()),
        And if zero => Some(y.into()),
        Or if zero => Some(x.into()),
        Or if ones => Some(y.into()),
        Xor | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical if zero => Some(x.into()),
        _ => None,
    }
}
