//! Fill values for elements beyond the sizes, and arithmetic on sizes.

use xla_hlo::ops::{BinaryOp, CompareDirection, simple_combiner};
use xla_hlo::{ArrayShape, Dynamism, ElementKind, ElementType, InstrId, Result, Scalar};

use super::{Padder, Sizes};

impl Padder<'_> {
    /// Replaces elements of `x` beyond the sizes of `dimensions` by the scalar `fill`; returns `x` if no size is
    /// dynamic.
    pub(super) fn filled(&mut self, x: InstrId, sizes: &Sizes, dimensions: &[usize], fill: InstrId) -> Result<InstrId> {
        let dims = self.at.dims(x);
        let Some(inside) = self.inside(&dims, sizes, dimensions)? else { return Ok(x) };
        let fill = self.at.broadcast(fill, &dims, &[])?;
        self.at.select(inside, x, fill)
    }

    /// Fills the operand of a `set-dimension-size` to the whole bound with zeros beyond its previous size.
    pub(super) fn set_whole(&mut self, id: InstrId, sizes: &mut Sizes, dimension: usize) -> Result<()> {
        let x = self.at.graph()[id].operand(0);
        let zero = self.at.zeros(&ArrayShape::scalar(self.at.element_type(x)?))?;
        let whole = self.filled(x, sizes, &[dimension], zero)?;
        self.at.graph_mut().replace_operand(id, 0, whole);
        sizes[dimension] = None;
        Ok(())
    }

    /// Returns a `pred` mask of the elements of an array with bounds `dims` that are within the sizes of `dimensions`;
    /// `None` if all are.
    pub(super) fn inside(&mut self, dims: &[usize], sizes: &Sizes, dimensions: &[usize]) -> Result<Option<InstrId>> {
        let mut inside = None;
        for &d in dimensions {
            let Some(size) = sizes[d] else { continue };
            let index = self.at.iota(ElementType::S32, dims, d)?;
            let size = self.at.broadcast(size, dims, &[])?;
            let here = self.at.compare(CompareDirection::Lt, index, size)?;
            inside = Some(match inside {
                Some(inside) => self.at.binary(BinaryOp::And, inside, here)?,
                None => here,
            });
        }
        Ok(inside)
    }

    /// Returns a constant size.
    pub(super) fn known(&mut self, size: usize) -> Result<InstrId> {
        let size = i32::try_from(size).map_err(|_| {
            xla_hlo::Error::unimplemented(format!(
                "dimension size {size} does not fit s32, in which dynamic sizes are computed"
            ))
        })?;
        self.at.integer(ElementType::S32, i64::from(size))
    }

    /// Clamps a size from the program between 0 and its bound.
    pub(super) fn clamped(&mut self, size: InstrId, bound: usize) -> Result<InstrId> {
        if self.is_constant(size, bound) {
            return Ok(size);
        }
        let (zero, bound) = (self.known(0)?, self.known(bound)?);
        let size = self.at.binary(BinaryOp::Maximum, size, zero)?;
        self.at.binary(BinaryOp::Minimum, size, bound)
    }

    /// Returns the size of dimension `d` of an array, known at compile time or at run time.
    pub(super) fn size_of(&mut self, x: InstrId, d: usize) -> Result<InstrId> {
        let bound = self.at.array(x)?.dims()[d];
        self.size_or(self.array_sizes(x)[d], bound)
    }

    /// Returns a size, or the bound if there is none.
    pub(super) fn size_or(&mut self, size: Option<InstrId>, bound: usize) -> Result<InstrId> {
        size.map_or_else(|| self.known(bound), Ok)
    }

    /// Returns the size of matching dimensions: the smaller of the two.
    pub(super) fn smaller(&mut self, a: Option<InstrId>, b: Option<InstrId>) -> Result<Option<InstrId>> {
        match (a, b) {
            (Some(a), Some(b)) if a != b => self.at.binary(BinaryOp::Minimum, a, b).map(Some),
            (a, b) => Ok(a.or(b)),
        }
    }

    /// Returns the sizes of arrays in which all dimensions match.
    pub(super) fn agreed(&mut self, a: &Sizes, b: &Sizes) -> Result<Sizes> {
        a.iter().zip(b).map(|(&a, &b)| self.smaller(a, b)).collect()
    }

    /// Whether dimension `d` of a value's first array is declared as dynamic.
    pub(super) fn has_bounds(&self, id: InstrId, d: usize) -> bool {
        let leaves = self.at.shape(id).leaves();
        leaves.first().and_then(|(_, leaf)| leaf.as_array()).is_some_and(|a| a.dynamism(d) != Dynamism::Static)
    }

    /// Returns a value that a reduction starting from `init` may combine any number of times.
    ///
    /// This is `init` itself for idempotent operations such as maximum, and otherwise the identity of the operation.
    /// For a combiner of several operations, `init` must be the identity, as HLO requires.
    pub(super) fn identity(&mut self, combiner: xla_hlo::CompId, init: InstrId) -> Result<InstrId> {
        let ty = self.at.array(init)?.element_type();
        let op = self.at.module().get(combiner).and_then(simple_combiner);
        let Some(value) = op.and_then(|op| neutral(op, ty)) else { return Ok(init) };
        self.at.scalar(ty, value)
    }
}

/// Returns the identity of operations that are not idempotent; negative zero for sums, since adding it preserves every
/// sign.
fn neutral(op: BinaryOp, ty: ElementType) -> Option<Scalar> {
    let number = |value: f64| match ty.kind() {
        ElementKind::Float => Scalar::Float(value),
        ElementKind::Complex => Scalar::Complex(value, if value == 0.0 { value } else { 0.0 }),
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => Scalar::from_i64(ty, value as i64),
    };
    match op {
        BinaryOp::Add | BinaryOp::Xor => Some(number(-0.0)),
        BinaryOp::Multiply => Some(number(1.0)),
        _ => None,
    }
}
