//! Elementwise operations.

use xla_hlo::ops::{
    Binary, BinaryOp, BitcastConvert, Clamp, Compare, CompareDirection, CompareType, Convert, Op, ReducePrecision,
    ResultAccuracy, Select, Unary, UnaryOp,
};
use xla_hlo::{ElementType, InstrId, Opcode, Result, Shape};

use super::call::Call;
use super::complex_bits;
use super::context::Lowering;
use super::dimensions::repeat;
use super::identities::{constant_second, unchanged};
use crate::ir::{Attribute, EnumKind};

/// Lowers an elementwise operation.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    if let ("select", &[predicate, x, y]) = (call.name, &call.operands[..]) {
        return Some(select(lowering, call, [predicate, x, y]));
    }
    if let ("convert", &[x]) = (call.name, &call.operands[..]) {
        return Some(convert(lowering, call, x));
    }
    if call.name == "bitcast_convert"
        && let Some(result) = complex_bits::lower(lowering, call)
    {
        return Some(result);
    }
    Some(operation(lowering, call)?.and_then(|op| match (op, &call.operands[..]) {
        (Op::Compare(compare), &[x, y]) => ordered(lowering, call, compare, [x, y]),
        (Op::Binary(Binary { op }), &[x, y]) => {
            let operands = constant_second(lowering, op, [x, y]);
            match unchanged(lowering, op, operands) {
                Some(x) => Ok(x),
                None => lowering.add(Binary { op }, call.shape(), operands),
            }
        }
        (op, operands) => lowering.add(op, call.shape(), operands),
    }))
}

fn operation(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<Op>> {
    Some(match call.name {
        "compare" => compare(call, lowering.shape(*call.operands.first()?).element_type()),
        "clamp" => Ok(Clamp.into()),
        "bitcast_convert" => Ok(BitcastConvert.into()),
        "reduce_precision" => reduce_precision(call),
        // HLO's cube root is defined for real types only.
        "cbrt" if call.shape().element_type().is_some_and(ElementType::is_complex) => return None,
        name => {
            // StableHLO joins words with `_`, HLO with `-`.
            let opcode = Opcode::from_name(&name.replace('_', "-"))?;
            if let Some(op) = UnaryOp::from_opcode(opcode) {
                accuracy(call).map(|accuracy| Unary { op, accuracy }.into())
            } else {
                Ok(Binary { op: BinaryOp::from_opcode(opcode)? }.into())
            }
        }
    })
}

/// Lowers a conversion of element types. From complex to real, it takes the real part.
fn convert(lowering: &mut Lowering<'_>, call: &Call<'_>, mut x: InstrId) -> Result<InstrId> {
    let is_complex = |shape: &Shape| shape.element_type().is_some_and(ElementType::is_complex);
    if is_complex(&lowering.shape(x)) && !is_complex(&call.shape()) {
        x = lowering.infer(Unary { op: UnaryOp::Real, accuracy: ResultAccuracy::Default }, [x])?;
    }
    match lowering.shape(x).without_layout() == call.shape() {
        true => Ok(x),
        false => lowering.add(Convert, call.shape(), [x]),
    }
}

/// Lowers a select; a scalar predicate is broadcast.
fn select(lowering: &mut Lowering<'_>, call: &Call<'_>, [predicate, x, y]: [InstrId; 3]) -> Result<InstrId> {
    let (of, to) = (lowering.shape(predicate), call.shape());
    let (of, to) = (of.expect_array()?, to.expect_array()?);
    let predicate = match of.rank() == 0 && to.rank() > 0 && to.is_static() {
        true => repeat(lowering, predicate, Shape::array(ElementType::Pred, to.dims().to_vec()), Vec::new())?,
        false => predicate,
    };
    lowering.add(Select, call.shape(), [predicate, x, y])
}

/// Lowers a comparison. A signed or unsigned comparison first converts integers of the other signedness.
fn ordered(lowering: &mut Lowering<'_>, call: &Call<'_>, compare: Compare, operands: [InstrId; 2]) -> Result<InstrId> {
    let shape = lowering.shape(operands[0]);
    let ty = shape.expect_array()?.element_type();
    let wanted = match compare.order {
        Some(CompareType::Signed) => signed(ty, true),
        Some(CompareType::Unsigned) => signed(ty, false),
        _ => None,
    };
    let Some(wanted) = wanted else { return lowering.add(compare, call.shape(), operands) };
    let mut converted = Vec::with_capacity(2);
    for operand in operands {
        let shape = lowering.shape(operand).expect_array()?.dims().to_vec();
        converted.push(lowering.add(BitcastConvert, Shape::array(wanted, shape), [operand])?);
    }
    lowering.add(Compare::new(compare.direction), call.shape(), converted)
}

/// Returns the integer type of this width with the other signedness; `None` if `ty` has the wanted signedness or is no
/// integer.
fn signed(ty: ElementType, with_sign: bool) -> Option<ElementType> {
    use ElementType::{S2, S4, S8, S16, S32, S64, U2, U4, U8, U16, U32, U64};
    let pairs = [(S2, U2), (S4, U4), (S8, U8), (S16, U16), (S32, U32), (S64, U64)];
    pairs.into_iter().find_map(|(s, u)| match with_sign {
        true => (ty == u).then_some(s),
        false => (ty == s).then_some(u),
    })
}

fn compare(call: &Call<'_>, ty: Option<ElementType>) -> Result<Op> {
    let direction = match call.attributes.enumeration("comparison_direction", EnumKind::ComparisonDirection)? {
        "EQ" => CompareDirection::Eq,
        "NE" => CompareDirection::Ne,
        "GE" => CompareDirection::Ge,
        "GT" => CompareDirection::Gt,
        "LE" => CompareDirection::Le,
        _ => CompareDirection::Lt,
    };
    let order = match call.attributes.enumeration("compare_type", EnumKind::ComparisonType)? {
        "FLOAT" => Some(CompareType::Float),
        "TOTALORDER" => Some(CompareType::TotalOrder),
        "SIGNED" => Some(CompareType::Signed),
        "UNSIGNED" => Some(CompareType::Unsigned),
        _ => None,
    };
    let usual = ty.map(|ty| Compare::new(direction).order_for(ty));
    Ok(Compare { direction, order: order.filter(|order| Some(*order) != usual) }.into())
}

fn reduce_precision(call: &Call<'_>) -> Result<Op> {
    let bits = |name| {
        let bits = call.attributes.index(name)?;
        u32::try_from(bits)
            .map_err(|_| xla_hlo::Error::invalid_argument(format!("{name} is {bits}, which is out of range")))
    };
    Ok(ReducePrecision { exponent_bits: bits("exponent_bits")?, mantissa_bits: bits("mantissa_bits")? }.into())
}

/// Returns the required accuracy of a function's result.
fn accuracy(call: &Call<'_>) -> Result<ResultAccuracy> {
    let Some(id) = call.attributes.get("result_accuracy") else { return Ok(ResultAccuracy::Default) };
    let module = call.attributes.module;
    let Attribute::ResultAccuracy(accuracy) = &module.attributes[id] else {
        return Err(xla_hlo::Error::invalid_argument("result_accuracy is not an accuracy"));
    };
    Ok(match &module.attributes[accuracy.mode] {
        Attribute::Enum(EnumKind::ResultAccuracyMode, 1) => ResultAccuracy::Highest,
        Attribute::Enum(EnumKind::ResultAccuracyMode, 2) => {
            let (atol, rtol) = (accuracy.absolute, accuracy.relative);
            ResultAccuracy::Tolerance { atol, rtol, ulps: accuracy.ulps }
        }
        _ => ResultAccuracy::Default,
    })
}
