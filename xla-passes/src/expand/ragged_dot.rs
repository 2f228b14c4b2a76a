//! Ragged dots as dots and masks.

use xla_hlo::ops::{BinaryOp, CompareDirection, Dot, DotDims, RaggedDot, RaggedMode};
use xla_hlo::{ArrayShape, ElementType, InstrId, Module, Op, Result, Scalar};

use super::Writer;
use crate::{Pass, PassContext};

/// Puts `ragged-dot` in terms of a dot over all groups and a mask that says which elements are in which group.
///
/// What a mask takes away is replaced, never multiplied by zero: a NaN in one group does not reach another.
pub struct ExpandRaggedDots;

impl Pass for ExpandRaggedDots {
    fn name(&self) -> &'static str {
        "expand-ragged-dots"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        super::expand_each(module, |graph, id| matches!(graph[id].op(), Op::RaggedDot(_)), expand)
    }
}

fn expand(w: &mut Writer<'_>, id: InstrId) -> Result<InstrId> {
    let Op::RaggedDot(op) = w.graph()[id].op().clone() else { return Ok(id) };
    let result = w.array(id)?.clone();
    let operands = w.operands(id);
    let (lhs, rhs, sizes) = (with_zero(w, operands[0])?, with_zero(w, operands[1])?, operands[2]);
    let ty = result.element_type();
    let computed = expand_to(w, &op, [lhs, rhs, sizes], result.with_element_type(type_with_zero(ty)))?;
    w.convert(computed, ty)
}

/// The element type in which masks can put zeros: `f8e8m0fnu` has none.
fn type_with_zero(ty: ElementType) -> ElementType {
    if ty == ElementType::F8E8M0FNU { ElementType::F32 } else { ty }
}

fn with_zero(w: &mut Writer<'_>, x: InstrId) -> Result<InstrId> {
    let ty = type_with_zero(w.element_type(x)?);
    w.convert(x, ty)
}

fn expand_to(
    w: &mut Writer<'_>,
    op: &RaggedDot,
    [lhs, rhs, sizes]: [InstrId; 3],
    result: ArrayShape,
) -> Result<InstrId> {
    match op.mode() {
        RaggedMode::Batch => w.add(dot(op, op.dims.clone()), Some(result.with_layout(None).into()), &[lhs, rhs]),
        RaggedMode::Rows => rows(w, op, [lhs, rhs, sizes], &result),
        RaggedMode::Contracted => contracted(w, op, [lhs, rhs, sizes], &result),
    }
}

fn dot(op: &RaggedDot, dims: DotDims) -> Dot {
    Dot { dims, precision: op.precision.clone(), algorithm: None }
}

/// Every row with every group's matrix, of which the row's own is taken.
fn rows(w: &mut Writer<'_>, op: &RaggedDot, [lhs, rhs, sizes]: [InstrId; 3], result: &ArrayShape) -> Result<InstrId> {
    let lhs_rank = w.dims(lhs).len();
    let rhs_dims = w.dims(rhs);
    let free = DotDims::free(lhs_rank, &op.dims.lhs_batch, &op.dims.lhs_contracting);
    let columns = DotDims::free(rhs_dims.len(), &op.dims.rhs_batch, &op.dims.rhs_contracting);
    // The dimension of the product that counts groups.
    let before = columns.iter().take_while(|&&d| Some(d) != op.group_dimension).count();
    let group = op.dims.lhs_batch.len() + free.len() + before;
    let mut dims = result.dims().to_vec();
    dims.insert(group, op.group_dimension.map_or(0, |d| rhs_dims[d]));
    let shape = ArrayShape::new(result.element_type(), dims.clone());
    let product = w.add(dot(op, op.dims.clone()), Some(shape.clone().into()), &[lhs, rhs])?;
    let mask = Mask::new(w, op, lhs, sizes)?;
    // Where the dimensions of the left operand are in the product.
    let order = [op.dims.lhs_batch.clone(), free].concat();
    let place = |d: usize| order.iter().position(|&o| o == d).unwrap_or(0);
    let mask = mask.spread(w, &dims, group, place)?;
    let zero = w.splat(&shape, Scalar::zero(result.element_type()))?;
    let own = w.select(mask, product, zero)?;
    w.sum(own, &[group])
}

/// Both operands once for each group, with zeros outside of it; then the groups are a batch dimension.
fn contracted(
    w: &mut Writer<'_>,
    op: &RaggedDot,
    [lhs, rhs, sizes]: [InstrId; 3],
    result: &ArrayShape,
) -> Result<InstrId> {
    let mask = Mask::new(w, op, lhs, sizes)?;
    let pair = |d: usize| {
        let pairs = |from: &[usize], to: &[usize]| from.iter().position(|&l| l == d).map(|i| to[i]);
        let dims = &op.dims;
        pairs(&dims.lhs_batch, &dims.rhs_batch).or(pairs(&dims.lhs_contracting, &dims.rhs_contracting)).unwrap_or(0)
    };
    let lhs = masked(w, &mask, lhs, |d| d + 1)?;
    let rhs = masked(w, &mask, rhs, |d| pair(d) + 1)?;
    let behind = |dims: &[usize]| dims.iter().map(|d| d + 1).collect::<Vec<_>>();
    let batch = |dims: &[usize]| [vec![0], behind(dims)].concat();
    let dims = DotDims {
        lhs_batch: batch(&op.dims.lhs_batch),
        rhs_batch: batch(&op.dims.rhs_batch),
        lhs_contracting: behind(&op.dims.lhs_contracting),
        rhs_contracting: behind(&op.dims.rhs_contracting),
    };
    w.add(dot(op, dims), Some(result.clone().with_layout(None).into()), &[lhs, rhs])
}

/// An array once for each group, zero outside of it.
fn masked(w: &mut Writer<'_>, mask: &Mask, x: InstrId, place: impl Fn(usize) -> usize) -> Result<InstrId> {
    let ty = w.element_type(x)?;
    let dims = [vec![mask.groups], w.dims(x)].concat();
    let copies = w.broadcast(x, &dims, &(1..dims.len()).collect::<Vec<_>>())?;
    let mask = mask.spread(w, &dims, 0, place)?;
    let zero = w.splat(&ArrayShape::new(ty, dims), Scalar::zero(ty))?;
    w.select(mask, copies, zero)
}

/// Truth values over the dimensions that group sizes are for, the ragged dimension, and the groups.
struct Mask {
    array: InstrId,
    /// Dimensions of the left operand that come first.
    prefix: Vec<usize>,
    ragged: usize,
    groups: usize,
}

impl Mask {
    fn new(w: &mut Writer<'_>, op: &RaggedDot, lhs: InstrId, sizes: InstrId) -> Result<Mask> {
        let lhs_dims = w.dims(lhs);
        let extent = lhs_dims[op.ragged_dimension];
        let mut dims = w.dims(sizes);
        let groups = dims.pop().unwrap_or(0);
        let prefix = if dims.is_empty() { Vec::new() } else { op.prefix(lhs_dims.len()) };
        let sizes = bounded(w, sizes, extent)?;
        let ends = running_sum(w, sizes)?;
        let starts = w.binary(BinaryOp::Subtract, ends, sizes)?;
        // The ragged dimension goes between the prefix and the groups.
        let rank = dims.len();
        let whole = [dims, vec![extent, groups]].concat();
        let places: Vec<usize> = (0..rank).chain([rank + 1]).collect();
        let starts = w.broadcast(starts, &whole, &places)?;
        let ends = w.broadcast(ends, &whole, &places)?;
        let at = w.iota(ElementType::S64, &whole, rank)?;
        let begun = w.compare(CompareDirection::Ge, at, starts)?;
        let not_over = w.compare(CompareDirection::Lt, at, ends)?;
        let array = w.binary(BinaryOp::And, begun, not_over)?;
        Ok(Mask { array, prefix, ragged: op.ragged_dimension, groups })
    }

    /// The mask over an array of `dims` in which `group` counts groups and `place` says where a dimension of the left
    /// operand is.
    fn spread(
        &self,
        w: &mut Writer<'_>,
        dims: &[usize],
        group: usize,
        place: impl Fn(usize) -> usize,
    ) -> Result<InstrId> {
        let before_or_behind = |at: usize| if group == 0 || at < group { at } else { at + 1 };
        let mut places: Vec<usize> =
            self.prefix.iter().chain([&self.ragged]).map(|&d| before_or_behind(place(d))).collect();
        places.push(group);
        w.broadcast(self.array, dims, &places)
    }
}

/// Sizes as `s64` from 0 to `extent`.
fn bounded(w: &mut Writer<'_>, sizes: InstrId, extent: usize) -> Result<InstrId> {
    let most = Scalar::Signed(extent as i64);
    // As signed numbers, the largest unsigned ones would be negative.
    let sizes = match w.element_type(sizes)? {
        ElementType::U64 => w.binary_with(BinaryOp::Minimum, sizes, Scalar::Unsigned(extent as u64))?,
        _ => sizes,
    };
    let sizes = w.convert(sizes, ElementType::S64)?;
    let sizes = w.binary_with(BinaryOp::Maximum, sizes, Scalar::Signed(0))?;
    w.binary_with(BinaryOp::Minimum, sizes, most)
}

/// The sum of each element and those before it along the last dimension.
fn running_sum(w: &mut Writer<'_>, x: InstrId) -> Result<InstrId> {
    let mut dims = w.dims(x);
    let last = dims.len() - 1;
    dims.push(dims[last]);
    let ty = w.element_type(x)?;
    let square = ArrayShape::new(ty, dims.clone());
    // Element i of the new last dimension is what is summed into element j of the one before it.
    let places: Vec<usize> = (0..last).chain([last + 1]).collect();
    let copies = w.broadcast(x, &dims, &places)?;
    let (j, i) = (w.iota(ty, &dims, last)?, w.iota(ty, &dims, last + 1)?);
    let counts = w.compare(CompareDirection::Le, i, j)?;
    let zero = w.splat(&square, Scalar::zero(ty))?;
    let counted = w.select(counts, copies, zero)?;
    w.sum(counted, &[last + 1])
}
