//! `bitcast_convert` between complex types of different widths. HLO supports such a cast only for real types.

use xla_hlo::ops::{Binary, BinaryOp, BitcastConvert, Concatenate, Reshape, Slice, SliceRange, Unary, UnaryOp};
use xla_hlo::{ElementType, Error, InstrId, Result, Shape};

use super::call::Call;
use super::context::Lowering;

/// Lowers a cast from `c128` to pairs of `c64`, or back; `None` for other types.
///
/// The real part of a `c128` is the first `c64`, and its imaginary part is the second one.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let &[x] = &call.operands[..] else { return None };
    match [lowering.shape(x).element_type()?, call.shape().element_type()?] {
        [ElementType::C128, ElementType::C64] => Some(narrowed(lowering, call, x)),
        [ElementType::C64, ElementType::C128] => Some(widened(lowering, call, x)),
        _ => None,
    }
}

fn narrowed(lowering: &mut Lowering<'_>, call: &Call<'_>, x: InstrId) -> Result<InstrId> {
    let shape = lowering.shape(x);
    let dims = shape.expect_array()?.dims();
    let halves = |lowering: &mut Lowering<'_>, part: UnaryOp| {
        let part = lowering.infer(Unary::from(part), [x])?;
        lowering.add(BitcastConvert, Shape::array(ElementType::F32, [dims, &[2]].concat()), [part])
    };
    // The last dimension of each holds the bits of a real and of an imaginary part.
    let parts = [halves(lowering, UnaryOp::Real)?, halves(lowering, UnaryOp::Imag)?];
    let rows = stacked(lowering, parts, dims.len())?;
    let [re, im] = unstacked(lowering, rows)?;
    lowering.add(Binary { op: BinaryOp::Complex }, call.shape(), [re, im])
}

fn widened(lowering: &mut Lowering<'_>, call: &Call<'_>, x: InstrId) -> Result<InstrId> {
    let shape = lowering.shape(x);
    let Some((2, _)) = shape.expect_array()?.dims().split_last() else {
        return Err(Error::invalid_argument(format!("the last dimension of {shape} must be 2 for a cast to c128")));
    };
    let parts = [lowering.infer(Unary::from(UnaryOp::Real), [x])?, lowering.infer(Unary::from(UnaryOp::Imag), [x])?];
    let rank = shape.expect_array()?.rank();
    let bits = stacked(lowering, parts, rank)?;
    let wide = Shape::array(ElementType::F64, shape.expect_array()?.dims().to_vec());
    let wide = lowering.add(BitcastConvert, wide, [bits])?;
    let [re, im] = unstacked(lowering, wide)?;
    lowering.add(Binary { op: BinaryOp::Complex }, call.shape(), [re, im])
}

/// Stacks two arrays along a new dimension.
fn stacked(lowering: &mut Lowering<'_>, parts: [InstrId; 2], dimension: usize) -> Result<InstrId> {
    let mut rows = Vec::with_capacity(2);
    for part in parts {
        let shape = lowering.shape(part);
        let array = shape.expect_array()?;
        let mut dims = array.dims().to_vec();
        dims.insert(dimension, 1);
        rows.push(lowering.add(
            Reshape { inferred_dimension: None },
            Shape::array(array.element_type(), dims),
            [part],
        )?);
    }
    lowering.infer(Concatenate { dimension }, rows)
}

/// Splits the last dimension, which has extent 2, into two arrays.
fn unstacked(lowering: &mut Lowering<'_>, x: InstrId) -> Result<[InstrId; 2]> {
    let shape = lowering.shape(x);
    let array = shape.expect_array()?;
    let dims = &array.dims()[..array.rank().saturating_sub(1)];
    let mut part = |start: usize| {
        let whole = dims.iter().map(|&limit| SliceRange { start: 0, limit, stride: 1 });
        let ranges = whole.chain([SliceRange { start, limit: start + 1, stride: 1 }]).collect();
        let part = lowering.infer(Slice { ranges }, [x])?;
        let shape = Shape::array(array.element_type(), dims.to_vec());
        lowering.add(Reshape { inferred_dimension: None }, shape, [part])
    };
    Ok([part(0)?, part(1)?])
}
