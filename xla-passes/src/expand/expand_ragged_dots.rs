//! Expands ragged dots into dots and masks.

use xla_hlo::ops::{BinaryOp, CompareDirection, Dot, DotDims, RaggedDot, RaggedMode};
use xla_hlo::{ArrayShape, ElementType, InstrId, Module, Op, Result, Scalar};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Expands `ragged-dot` into a dot over all groups and a mask of the elements in each group.
///
/// Masked elements are replaced, not multiplied by zero, so that a NaN in one group does not affect another.
pub struct ExpandRaggedDots;

impl Pass for ExpandRaggedDots {
    fn name(&self) -> &'static str {
        "expand-ragged-dots"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::replace_each(self, module, cx, |graph, id| matches!(graph[id].op(), Op::RaggedDot(_)), expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::RaggedDot(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let result = at.array(id)?.clone();
    let operands = at.operands(id);
    let (lhs, rhs, sizes) = (with_zero(at, operands[0])?, with_zero(at, operands[1])?, operands[2]);
    let ty = result.element_type();
    let computed = expand_to(at, &op, [lhs, rhs, sizes], result.with_element_type(type_with_zero(ty)))?;
    at.convert(computed, ty)
}

/// Returns the element type for masking with zeros: `f8e8m0fnu` has none.
fn type_with_zero(ty: ElementType) -> ElementType {
    if ty == ElementType::F8E8M0FNU { ElementType::F32 } else { ty }
}

fn with_zero(at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
    let ty = type_with_zero(at.element_type(x)?);
    at.convert(x, ty)
}

fn expand_to(
    at: &mut Inserter<'_>,
    op: &RaggedDot,
    [lhs, rhs, sizes]: [InstrId; 3],
    result: ArrayShape,
) -> Result<InstrId> {
    match op.mode() {
        RaggedMode::Batch => at.add_as(dot(op, op.dims.clone()), result.with_layout(None), [lhs, rhs]),
        RaggedMode::Rows => rows(at, op, [lhs, rhs, sizes], &result),
        RaggedMode::Contracted => contracted(at, op, [lhs, rhs, sizes], &result),
    }
}

fn dot(op: &RaggedDot, dims: DotDims) -> Dot {
    Dot { dims, precision: op.precision.clone(), algorithm: None }
}

/// Multiplies each row by the matrices of all groups, then selects the product with the row's own group.
fn rows(
    at: &mut Inserter<'_>,
    op: &RaggedDot,
    [lhs, rhs, sizes]: [InstrId; 3],
    result: &ArrayShape,
) -> Result<InstrId> {
    let lhs_rank = at.dims(lhs).len();
    let rhs_dims = at.dims(rhs);
    let free = op.dims.lhs(lhs_rank).free;
    let columns = op.dims.rhs(rhs_dims.len()).free;
    // Dimension of the product that indexes groups.
    let before = columns.iter().take_while(|&&d| Some(d) != op.group_dimension).count();
    let group = op.dims.lhs_batch.len() + free.len() + before;
    let mut dims = result.dims().to_vec();
    dims.insert(group, op.group_dimension.map_or(0, |d| rhs_dims[d]));
    let shape = ArrayShape::new(result.element_type(), dims.clone());
    let product = at.add_as(dot(op, op.dims.clone()), shape.clone(), [lhs, rhs])?;
    let mask = Mask::new(at, op, lhs, sizes)?;
    // Positions of the left operand's dimensions in the product.
    let order = [op.dims.lhs_batch.clone(), free].concat();
    let place = |d: usize| order.iter().position(|&o| o == d).unwrap_or(0);
    let mask = mask.spread(at, &dims, group, place)?;
    let zero = at.splat(&shape, Scalar::zero(result.element_type()))?;
    let own = at.select(mask, product, zero)?;
    at.sum(own, &[group])
}

/// Replicates both operands for each group, with zeros outside of the group; the groups are then a batch dimension.
fn contracted(
    at: &mut Inserter<'_>,
    op: &RaggedDot,
    [lhs, rhs, sizes]: [InstrId; 3],
    result: &ArrayShape,
) -> Result<InstrId> {
    let mask = Mask::new(at, op, lhs, sizes)?;
    let pair = |d: usize| {
        let pairs = |from: &[usize], to: &[usize]| from.iter().position(|&l| l == d).map(|i| to[i]);
        let dims = &op.dims;
        pairs(&dims.lhs_batch, &dims.rhs_batch).or(pairs(&dims.lhs_contracting, &dims.rhs_contracting)).unwrap_or(0)
    };
    let lhs = masked(at, &mask, lhs, |d| d + 1)?;
    let rhs = masked(at, &mask, rhs, |d| pair(d) + 1)?;
    let behind = |dims: &[usize]| dims.iter().map(|d| d + 1).collect::<Vec<_>>();
    let batch = |dims: &[usize]| [vec![0], behind(dims)].concat();
    let dims = DotDims {
        lhs_batch: batch(&op.dims.lhs_batch),
        rhs_batch: batch(&op.dims.rhs_batch),
        lhs_contracting: behind(&op.dims.lhs_contracting),
        rhs_contracting: behind(&op.dims.rhs_contracting),
    };
    at.add_as(dot(op, dims), result.clone().with_layout(None), [lhs, rhs])
}

/// Replicates an array for each group, with zeros outside of the group.
fn masked(at: &mut Inserter<'_>, mask: &Mask, x: InstrId, place: impl Fn(usize) -> usize) -> Result<InstrId> {
    let ty = at.element_type(x)?;
    let dims = [vec![mask.groups], at.dims(x)].concat();
    let copies = at.broadcast(x, &dims, &(1..dims.len()).collect::<Vec<_>>())?;
    let mask = mask.spread(at, &dims, 0, place)?;
    let zero = at.splat(&ArrayShape::new(ty, dims), Scalar::zero(ty))?;
    at.select(mask, copies, zero)
}

/// Mask over the dimensions of the group sizes, the ragged dimension and the groups.
struct Mask {
    array: InstrId,
    /// Dimensions of the left operand that are the first dimensions of the mask.
    prefix: Vec<usize>,
    ragged: usize,
    groups: usize,
}

impl Mask {
    fn new(at: &mut Inserter<'_>, op: &RaggedDot, lhs: InstrId, sizes: InstrId) -> Result<Mask> {
        let lhs_dims = at.dims(lhs);
        let extent = lhs_dims[op.ragged_dimension];
        let mut dims = at.dims(sizes);
        let groups = dims.pop().unwrap_or(0);
        let prefix = if dims.is_empty() { Vec::new() } else { op.prefix(lhs_dims.len()) };
        let sizes = bounded(at, sizes, extent)?;
        let ends = running_sum(at, sizes)?;
        let starts = at.binary(BinaryOp::Subtract, ends, sizes)?;
        // The ragged dimension is inserted between the prefix and the groups.
        let rank = dims.len();
        let whole = [dims, vec![extent, groups]].concat();
        let places: Vec<usize> = (0..rank).chain([rank + 1]).collect();
        let starts = at.broadcast(starts, &whole, &places)?;
        let ends = at.broadcast(ends, &whole, &places)?;
        let place = at.iota(ElementType::S64, &whole, rank)?;
        let begun = at.compare(CompareDirection::Ge, place, starts)?;
        let not_over = at.compare(CompareDirection::Lt, place, ends)?;
        let array = at.binary(BinaryOp::And, begun, not_over)?;
        Ok(Mask { array, prefix, ragged: op.ragged_dimension, groups })
    }

    /// Broadcasts the mask to an array of `dims`. Dimension `group` indexes groups, and `place` maps a dimension of the
    /// left operand to its position.
    fn spread(
        &self,
        at: &mut Inserter<'_>,
        dims: &[usize],
        group: usize,
        place: impl Fn(usize) -> usize,
    ) -> Result<InstrId> {
        let before_or_behind = |d: usize| if group == 0 || d < group { d } else { d + 1 };
        let mut places: Vec<usize> =
            self.prefix.iter().chain([&self.ragged]).map(|&d| before_or_behind(place(d))).collect();
        places.push(group);
        at.broadcast(self.array, dims, &places)
    }
}

/// Converts sizes to `s64` and clamps them to `0..=extent`.
fn bounded(at: &mut Inserter<'_>, sizes: InstrId, extent: usize) -> Result<InstrId> {
    let most = Scalar::Signed(extent as i64);
    // The largest unsigned values would become negative as signed numbers.
    let sizes = match at.element_type(sizes)? {
        ElementType::U64 => at.binary_with(BinaryOp::Minimum, sizes, Scalar::Unsigned(extent as u64))?,
        _ => sizes,
    };
    let sizes = at.convert(sizes, ElementType::S64)?;
    let sizes = at.binary_with(BinaryOp::Maximum, sizes, Scalar::Signed(0))?;
    at.binary_with(BinaryOp::Minimum, sizes, most)
}

/// Emits the inclusive prefix sum along the last dimension.
fn running_sum(at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
    let mut dims = at.dims(x);
    let last = dims.len() - 1;
    dims.push(dims[last]);
    let ty = at.element_type(x)?;
    let square = ArrayShape::new(ty, dims.clone());
    // Element `i` of the new last dimension is added to element `j` of the preceding one.
    let places: Vec<usize> = (0..last).chain([last + 1]).collect();
    let copies = at.broadcast(x, &dims, &places)?;
    let (j, i) = (at.iota(ty, &dims, last)?, at.iota(ty, &dims, last + 1)?);
    let counts = at.compare(CompareDirection::Le, i, j)?;
    let zero = at.splat(&square, Scalar::zero(ty))?;
    let counted = at.select(counts, copies, zero)?;
    at.sum(counted, &[last + 1])
}
