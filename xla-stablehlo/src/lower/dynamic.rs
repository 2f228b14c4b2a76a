//! Operations whose shapes or attributes are operands.
//!
//! With constant operands, the operation becomes a static one. A result with bounds is computed at the bounds, and
//! `set-dimension-size` sets the actual sizes.

use xla_hlo::ops::{Constant, Convert, Dynamic, DynamicSlice, Op, Pad, Reshape, Slice, SliceRange};
use xla_hlo::{ArrayShape, Dynamism, ElementType, Error, InstrId, Literal, Result, Scalar, Shape};

use super::call::Call;
use super::context::Lowering;
use super::dynamic_padding::{Amounts, element, number};
use super::{contraction, data, dynamic_padding, fold, indexing, movement};

/// Lowers an operation whose sizes are operands.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    Some(match call.name {
        "dynamic_broadcast_in_dim" => broadcast(lowering, call),
        "dynamic_iota" => iota(lowering, call),
        "dynamic_reshape" => reshape(lowering, call),
        "dynamic_pad" => pad(lowering, call),
        "real_dynamic_slice" => slice(lowering, call),
        "dynamic_gather" => gather(lowering, call),
        "dynamic_conv" => convolution(lowering, call),
        _ => return None,
    })
}

/// Returns the integers of an operand, if it evaluates to a constant.
fn constants(lowering: &mut Lowering<'_>, id: InstrId) -> Option<Vec<i64>> {
    lowering.evaluated(id).as_ref().and_then(fold::integers)
}

/// Returns the non-negative integers of an operand, if it evaluates to a constant.
fn indices(lowering: &mut Lowering<'_>, id: InstrId) -> Option<Vec<usize>> {
    constants(lowering, id)?.into_iter().map(|value| usize::try_from(value).ok()).collect()
}

fn not_constant(what: &str) -> Error {
    Error::unimplemented(format!("{what} depend on values of the program; they must be constants"))
}

/// Returns the shape of the result: the declared shape if it is static, otherwise the constant `sizes`, otherwise the
/// declared shape with its bounds.
pub(super) fn result(lowering: &mut Lowering<'_>, call: &Call<'_>, sizes: InstrId) -> Result<ArrayShape> {
    let written = call.shape();
    let written = written.expect_array()?;
    if written.is_static() {
        return Ok(written.clone());
    }
    if let Some(dims) = indices(lowering, sizes) {
        let says = |d: usize| match written.dynamism(d) {
            Dynamism::Static => dims[d] == written.dims()[d],
            Dynamism::Bounded => dims[d] <= written.dims()[d],
            Dynamism::Unbounded => true,
        };
        if dims.len() != written.rank() || !(0..dims.len()).all(says) {
            return Err(Error::invalid_argument(format!("the sizes {dims:?} do not fit the result {written}")));
        }
        let shape = ArrayShape::new(written.element_type(), dims);
        shape.checked_element_count()?;
        return Ok(shape);
    }
    match (0..written.rank()).any(|d| written.dynamism(d) == Dynamism::Unbounded) {
        true => Err(Error::unimplemented(format!(
            "{written} has sizes without bounds that depend on values of the program; make them constants, or state bounds in the type"
        ))),
        false => Ok(written.clone()),
    }
}

/// Returns element `d` of a list of sizes as `s32`, HLO's type for sizes.
fn size(lowering: &mut Lowering<'_>, sizes: InstrId, d: usize) -> Result<InstrId> {
    let ty = lowering.shape(sizes).expect_array()?.element_type();
    let ranges = vec![SliceRange { start: d, limit: d + 1, stride: 1 }];
    let size = lowering.infer(Slice { ranges }, [sizes])?;
    let size = lowering.add(Reshape { inferred_dimension: None }, Shape::scalar(ty), [size])?;
    let is_narrow = ty == ElementType::S32;
    if is_narrow { Ok(size) } else { lowering.add(Convert, Shape::scalar(ElementType::S32), [size]) }
}

/// Sets the sizes of the dynamic dimensions of `x`, which is computed at the bounds of `shape`.
pub(super) fn sized(
    lowering: &mut Lowering<'_>,
    mut x: InstrId,
    shape: &ArrayShape,
    sizes: InstrId,
) -> Result<InstrId> {
    for dimension in (0..shape.rank()).filter(|&d| shape.dynamism(d) == Dynamism::Bounded) {
        let size = size(lowering, sizes, dimension)?;
        x = lowering.infer(Dynamic::SetDimensionSize { dimension }, [x, size])?;
    }
    Ok(x)
}

fn broadcast(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x, sizes] = call.exactly()?;
    let shape = result(lowering, call, sizes)?;
    let whole = movement::broadcast(lowering, call, x, Shape::Array(shape.clone()).at_bounds())?;
    sized(lowering, whole, &shape, sizes)
}

fn iota(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [sizes] = call.exactly()?;
    let shape = result(lowering, call, sizes)?;
    let dimension = call.attributes.index("iota_dimension")?;
    let whole = data::iota(lowering, Shape::Array(shape.clone()).at_bounds(), dimension)?;
    sized(lowering, whole, &shape, sizes)
}

fn reshape(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x, sizes] = call.exactly()?;
    let shape = result(lowering, call, sizes)?;
    let rank = shape.rank();
    if shape.is_static() {
        return lowering.add(Reshape { inferred_dimension: None }, Shape::Array(shape), [x]);
    }
    let mut operands = vec![x];
    for d in 0..rank {
        operands.push(size(lowering, sizes, d)?);
    }
    lowering.add(Dynamic::DynamicReshape, Shape::Array(shape), operands)
}

fn pad(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x, value, low, high, interior] = call.exactly()?;
    let (Some(low), Some(high), Some(interior)) =
        (constants(lowering, low), constants(lowering, high), indices(lowering, interior))
    else {
        return pad_at_run_time(lowering, call, [x, value], [low, interior]);
    };
    let dims = movement::pad_dims(low, high, interior)?;
    lowering.add(Pad { dims }, call.shape(), [x, value])
}

/// Pads by amounts that are values of the program. The static shape of the result implies the high padding.
fn pad_at_run_time(
    lowering: &mut Lowering<'_>,
    call: &Call<'_>,
    [mut x, value]: [InstrId; 2],
    [low, interior]: [InstrId; 2],
) -> Result<InstrId> {
    let (from, to) = (lowering.shape(x), call.shape());
    let (from, to) = (from.expect_array()?, to.expect_array()?);
    if !from.is_static() || !to.is_static() || from.rank() != to.rank() {
        return Err(not_constant("paddings of a dynamic shape"));
    }
    for (dimension, &extent) in to.dims().iter().enumerate() {
        let [low, interior] = [element(lowering, low, &[dimension])?, element(lowering, interior, &[dimension])?];
        x = dynamic_padding::pad(lowering, [x, value], dimension, Amounts { low, interior }, extent)?;
    }
    Ok(x)
}

/// Lowers a slice with constant ranges, or of static size at dynamic starts.
fn slice(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x, starts, limits, strides] = call.exactly()?;
    let strides = indices(lowering, strides).ok_or_else(|| not_constant("strides"))?;
    if let (Some(starts), Some(limits)) = (indices(lowering, starts), indices(lowering, limits)) {
        let ranges = movement::ranges(starts, limits, strides)?;
        return lowering.add(Slice { ranges }, call.shape(), [x]);
    }
    let written = call.shape();
    let written = written.expect_array()?;
    let sizes = slice_sizes(lowering, written, starts, limits).filter(|_| strides.iter().all(|&stride| stride == 1));
    let sizes = sizes.ok_or_else(|| not_constant("the starts of a slice of dynamic size, or with strides,"))?;
    let ty = lowering.shape(starts).expect_array()?.element_type();
    let mut operands = vec![x];
    for d in 0..written.rank() {
        let ranges = vec![SliceRange { start: d, limit: d + 1, stride: 1 }];
        let start = lowering.infer(Slice { ranges }, [starts])?;
        operands.push(lowering.add(Reshape { inferred_dimension: None }, Shape::scalar(ty), [start])?);
    }
    lowering.add(DynamicSlice { sizes }, call.shape(), operands)
}

/// Returns the sizes of a slice at dynamic starts: those of its static type, or constant differences between limits and
/// starts.
fn slice_sizes(
    lowering: &mut Lowering<'_>,
    written: &ArrayShape,
    starts: InstrId,
    limits: InstrId,
) -> Option<Vec<usize>> {
    if written.is_static() {
        return Some(written.dims().to_vec());
    }
    let [a, b] = lowering.summands(limits)?;
    let sizes = if a == starts { b } else { a };
    indices(lowering, sizes).filter(|sizes| (a == starts || b == starts) && sizes.len() == written.rank())
}

fn gather(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x, starts, sizes] = call.exactly()?;
    let sizes = match indices(lowering, sizes) {
        Some(sizes) => sizes,
        None => {
            let rank = lowering.shape(x).expect_array()?.rank();
            indexing::slice_sizes_of_result(call, rank)?.ok_or_else(|| not_constant("slice_sizes"))?
        }
    };
    let op = indexing::gather(call, sizes)?;
    lowering.add(op, call.shape(), [x, starts])
}

fn convolution(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x, kernel, padding] = call.exactly()?;
    let Some(padding) = constants(lowering, padding) else {
        return convolution_at_run_time(lowering, call, [x, kernel, padding]);
    };
    let rows = padding.chunks(2).map(<[i64]>::to_vec).collect::<Vec<_>>();
    let op = contraction::convolution(lowering, call, kernel, &rows)?;
    lowering.add(op, call.shape(), [x, kernel])
}

/// Lowers a convolution whose padding is a value of the program. The input is dilated and padded to the extents that
/// the static result shape requires; the convolution itself then has no padding.
fn convolution_at_run_time(
    lowering: &mut Lowering<'_>,
    call: &Call<'_>,
    [mut x, kernel, padding]: [InstrId; 3],
) -> Result<InstrId> {
    let none = vec![vec![0, 0]; call.attributes.indices("input_spatial_dimensions")?.len()];
    let Op::Convolution(mut op) = contraction::convolution(lowering, call, kernel, &none)? else {
        return Err(Error::internal("a convolution was not lowered to a convolution"));
    };
    let (from, to) = (lowering.shape(x), call.shape());
    let (from, to) = (from.expect_array()?, to.expect_array()?);
    let ty = from.element_type();
    if !from.is_static() || !to.is_static() {
        return Err(not_constant("paddings of a dynamic shape"));
    }
    if ty == ElementType::F8E8M0FNU {
        return Err(Error::invalid_argument(format!("{from} is padded with zero, which {ty} does not have")));
    }
    let zero = lowering.infer(Constant { literal: Literal::scalar(ty, Scalar::zero(ty)) }, [])?;
    for (i, window) in op.window.dims.iter_mut().enumerate() {
        let place = op.dims.input_spatial.get(i).zip(op.dims.output_spatial.get(i));
        let (&dimension, &count) = place
            .and_then(|(input, output)| Some((input, to.dims().get(*output)?)))
            .filter(|(input, _)| **input < from.rank())
            .ok_or_else(|| Error::invalid_argument("spatial dimensions must be less than the rank"))?;
        let reach = window.size.saturating_sub(1).checked_mul(window.window_dilation);
        let extent = count.saturating_sub(1).checked_mul(window.stride).zip(reach);
        let extent = extent.and_then(|(steps, reach)| steps.checked_add(reach)?.checked_add(1));
        let extent =
            extent.ok_or_else(|| Error::resource_exhausted("the padded operand has more than 2^64 elements"))?;
        let low = element(lowering, padding, &[i, 0])?;
        let interior = number(lowering, window.base_dilation as i64 - 1)?;
        let extent = if count == 0 { 0 } else { extent };
        x = dynamic_padding::pad(lowering, [x, zero], dimension, Amounts { low, interior }, extent)?;
        window.base_dilation = 1;
    }
    lowering.add(Op::Convolution(op), Shape::Array(to.clone()), [x, kernel])
}
