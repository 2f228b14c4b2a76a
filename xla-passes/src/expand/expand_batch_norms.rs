//! Expands batch normalizations into elementwise operations and reductions.

use xla_hlo::ops::{BatchNorm, BatchNormKind, BinaryOp, UnaryOp};
use xla_hlo::{ArrayShape, ElementType, InstrId, Module, Op, Result, Scalar};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Expands batch normalizations and their gradients into sums over all dimensions except the feature dimension.
///
/// Types narrower than `f32` are computed in `f32` and rounded once. The variance is the mean of squared differences
/// from the mean, which avoids the cancellation of a difference of two means of squares.
pub struct ExpandBatchNorms;

impl Pass for ExpandBatchNorms {
    fn name(&self) -> &'static str {
        "expand-batch-norms"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::replace_each(self, module, cx, |graph, id| matches!(graph[id].op(), Op::BatchNorm(_)), expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::BatchNorm(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let leaves: Vec<ElementType> = at.shape(id).leaves().iter().filter_map(|(_, leaf)| leaf.element_type()).collect();
    let operands = at.operands(id);
    let mut types = leaves.clone();
    types.extend(operands.iter().filter_map(|&o| at.shape(o).element_type()));
    let ty = if types.contains(&ElementType::F64) { ElementType::F64 } else { ElementType::F32 };
    let operands = operands.into_iter().map(|o| at.convert(o, ty)).collect::<Result<Vec<_>>>()?;
    let shape = ArrayShape::new(ty, at.dims(operands[0]));
    let results = Norm { op: &op, shape }.results(at, &operands)?;
    let results = results.into_iter().zip(leaves).map(|(x, ty)| at.convert(x, ty)).collect::<Result<Vec<_>>>()?;
    match (op.kind, &results[..]) {
        (BatchNormKind::Inference, &[only]) => Ok(only),
        (_, all) => at.tuple(all),
    }
}

struct Norm<'a> {
    op: &'a BatchNorm,
    /// Shape of operand 0, in the element type of the computation.
    shape: ArrayShape,
}

impl Norm<'_> {
    fn results(&self, at: &mut Inserter<'_>, operands: &[InstrId]) -> Result<Vec<InstrId>> {
        match (self.op.kind, operands) {
            (BatchNormKind::Training, &[x, scale, offset]) => {
                let mean = self.mean(at, x)?;
                let centered = self.centered(at, x, mean)?;
                let squares = at.binary(BinaryOp::Multiply, centered, centered)?;
                let variance = self.mean(at, squares)?;
                let y = self.normalised(at, centered, variance, scale, offset)?;
                Ok(vec![y, mean, variance])
            }
            (BatchNormKind::Inference, &[x, scale, offset, mean, variance]) => {
                let centered = self.centered(at, x, mean)?;
                Ok(vec![self.normalised(at, centered, variance, scale, offset)?])
            }
            (BatchNormKind::Grad, &[x, scale, mean, variance, gradient]) => {
                self.gradients(at, x, [scale, mean, variance], gradient)
            }
            _ => {
                Err(xla_hlo::Error::internal("batch normalisation has a wrong number of operands (arity is verified)"))
            }
        }
    }

    /// Returns the gradients of `x`, scale and offset.
    fn gradients(
        &self,
        at: &mut Inserter<'_>,
        x: InstrId,
        [scale, mean, variance]: [InstrId; 3],
        gradient: InstrId,
    ) -> Result<Vec<InstrId>> {
        use BinaryOp::{Multiply, Subtract};
        let inverse = self.inverse_deviation(at, variance)?;
        let centered = self.centered(at, x, mean)?;
        let of_offset = self.sum(at, gradient)?;
        let products = at.binary(Multiply, gradient, centered)?;
        let products = self.sum(at, products)?;
        let of_scale = at.binary(Multiply, products, inverse)?;
        let mean_gradient = self.divided_by_count(at, of_offset)?;
        // Gradient through the variance: sum of products, divided by the variance and the number of elements.
        let share = at.binary(Multiply, of_scale, inverse)?;
        let share = self.divided_by_count(at, share)?;
        let (mean_gradient, share) = (self.spread(at, mean_gradient)?, self.spread(at, share)?);
        let straight = at.binary(Subtract, gradient, mean_gradient)?;
        let through_variance = at.binary(Multiply, centered, share)?;
        let difference = at.binary(Subtract, straight, through_variance)?;
        let factor = at.binary(Multiply, scale, inverse)?;
        let factor = self.spread(at, factor)?;
        Ok(vec![at.binary(Multiply, difference, factor)?, of_scale, of_offset])
    }

    /// Returns centered values, scaled to the deviation `scale` and shifted by `offset`.
    fn normalised(
        &self,
        at: &mut Inserter<'_>,
        centered: InstrId,
        variance: InstrId,
        scale: InstrId,
        offset: InstrId,
    ) -> Result<InstrId> {
        let inverse = self.inverse_deviation(at, variance)?;
        let factor = at.binary(BinaryOp::Multiply, inverse, scale)?;
        let (factor, offset) = (self.spread(at, factor)?, self.spread(at, offset)?);
        let scaled = at.binary(BinaryOp::Multiply, centered, factor)?;
        at.binary(BinaryOp::Add, scaled, offset)
    }

    fn inverse_deviation(&self, at: &mut Inserter<'_>, variance: InstrId) -> Result<InstrId> {
        let epsilon = Scalar::Float(f64::from(self.op.epsilon.get()));
        let sum = at.binary_with(BinaryOp::Add, variance, epsilon)?;
        at.unary(UnaryOp::Rsqrt, sum)
    }

    fn centered(&self, at: &mut Inserter<'_>, x: InstrId, mean: InstrId) -> Result<InstrId> {
        let mean = self.spread(at, mean)?;
        at.binary(BinaryOp::Subtract, x, mean)
    }

    fn mean(&self, at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
        let sum = self.sum(at, x)?;
        self.divided_by_count(at, sum)
    }

    fn sum(&self, at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
        let others: Vec<usize> = (0..self.shape.rank()).filter(|&d| d != self.op.feature_index).collect();
        at.sum(x, &others)
    }

    /// Divides by the number of elements per feature. Yields 0 / 0 if there are none.
    fn divided_by_count(&self, at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
        let others = self.shape.dims().iter().enumerate().filter(|(d, _)| *d != self.op.feature_index);
        let count: f64 = others.map(|(_, &size)| size as f64).product();
        at.binary_with(BinaryOp::Divide, x, Scalar::Float(count))
    }

    /// Broadcasts a vector of features to the whole array.
    fn spread(&self, at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
        at.broadcast(x, self.shape.dims(), &[self.op.feature_index])
    }
}
