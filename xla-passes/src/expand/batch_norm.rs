//! Batch normalisations as elementwise operations and sums.

use xla_hlo::ops::{BatchNorm, BatchNormKind, BinaryOp, UnaryOp};
use xla_hlo::{ArrayShape, ElementType, InstrId, Module, Op, Result, Scalar};

use super::Writer;
use crate::{Pass, PassContext};

/// Puts batch normalisations and their gradients in terms of sums over the other dimensions than the features'.
///
/// Types narrower than `f32` are computed in `f32` and rounded once. The variance is the mean of squared differences from
/// the mean, which does not cancel as the difference of two means of squares does.
pub struct ExpandBatchNorms;

impl Pass for ExpandBatchNorms {
    fn name(&self) -> &'static str {
        "expand-batch-norms"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        super::expand_each(module, |graph, id| matches!(graph[id].op(), Op::BatchNorm(_)), expand)
    }
}

fn expand(w: &mut Writer<'_>, id: InstrId) -> Result<InstrId> {
    let Op::BatchNorm(op) = w.graph()[id].op().clone() else { return Ok(id) };
    let leaves: Vec<ElementType> = w.shape(id).leaves().iter().filter_map(|(_, leaf)| leaf.element_type()).collect();
    let operands = w.operands(id);
    let mut types = leaves.clone();
    types.extend(operands.iter().filter_map(|&o| w.shape(o).element_type()));
    let ty = if types.contains(&ElementType::F64) { ElementType::F64 } else { ElementType::F32 };
    let operands = operands.into_iter().map(|o| w.convert(o, ty)).collect::<Result<Vec<_>>>()?;
    let shape = ArrayShape::new(ty, w.dims(operands[0]));
    let results = Norm { op: &op, shape }.results(w, &operands)?;
    let results = results.into_iter().zip(leaves).map(|(x, ty)| w.convert(x, ty)).collect::<Result<Vec<_>>>()?;
    match (op.kind, &results[..]) {
        (BatchNormKind::Inference, &[only]) => Ok(only),
        (_, all) => w.tuple(all),
    }
}

struct Norm<'a> {
    op: &'a BatchNorm,
    /// Of operand 0, in the type that is computed in.
    shape: ArrayShape,
}

impl Norm<'_> {
    fn results(&self, w: &mut Writer<'_>, operands: &[InstrId]) -> Result<Vec<InstrId>> {
        match (self.op.kind, operands) {
            (BatchNormKind::Training, &[x, scale, offset]) => {
                let mean = self.mean(w, x)?;
                let centered = self.centered(w, x, mean)?;
                let squares = w.binary(BinaryOp::Multiply, centered, centered)?;
                let variance = self.mean(w, squares)?;
                let y = self.normalised(w, centered, variance, scale, offset)?;
                Ok(vec![y, mean, variance])
            }
            (BatchNormKind::Inference, &[x, scale, offset, mean, variance]) => {
                let centered = self.centered(w, x, mean)?;
                Ok(vec![self.normalised(w, centered, variance, scale, offset)?])
            }
            (BatchNormKind::Grad, &[x, scale, mean, variance, gradient]) => {
                self.gradients(w, x, [scale, mean, variance], gradient)
            }
            _ => Err(xla_hlo::Error::internal("a batch normalisation has other operands (arity is verified)")),
        }
    }

    /// Gradients of x, scale and offset.
    fn gradients(
        &self,
        w: &mut Writer<'_>,
        x: InstrId,
        [scale, mean, variance]: [InstrId; 3],
        gradient: InstrId,
    ) -> Result<Vec<InstrId>> {
        use BinaryOp::{Multiply, Subtract};
        let inverse = self.inverse_deviation(w, variance)?;
        let centered = self.centered(w, x, mean)?;
        let of_offset = self.sum(w, gradient)?;
        let products = w.binary(Multiply, gradient, centered)?;
        let products = self.sum(w, products)?;
        let of_scale = w.binary(Multiply, products, inverse)?;
        let mean_gradient = self.divided_by_count(w, of_offset)?;
        // The centered values' share: sum of products, divided by the variance and the number of elements.
        let share = w.binary(Multiply, of_scale, inverse)?;
        let share = self.divided_by_count(w, share)?;
        let (mean_gradient, share) = (self.spread(w, mean_gradient)?, self.spread(w, share)?);
        let straight = w.binary(Subtract, gradient, mean_gradient)?;
        let through_variance = w.binary(Multiply, centered, share)?;
        let difference = w.binary(Subtract, straight, through_variance)?;
        let factor = w.binary(Multiply, scale, inverse)?;
        let factor = self.spread(w, factor)?;
        Ok(vec![w.binary(Multiply, difference, factor)?, of_scale, of_offset])
    }

    /// Centered values, scaled to the deviation `scale` and moved by `offset`.
    fn normalised(
        &self,
        w: &mut Writer<'_>,
        centered: InstrId,
        variance: InstrId,
        scale: InstrId,
        offset: InstrId,
    ) -> Result<InstrId> {
        let inverse = self.inverse_deviation(w, variance)?;
        let factor = w.binary(BinaryOp::Multiply, inverse, scale)?;
        let (factor, offset) = (self.spread(w, factor)?, self.spread(w, offset)?);
        let scaled = w.binary(BinaryOp::Multiply, centered, factor)?;
        w.binary(BinaryOp::Add, scaled, offset)
    }

    fn inverse_deviation(&self, w: &mut Writer<'_>, variance: InstrId) -> Result<InstrId> {
        let epsilon = Scalar::Float(f64::from(self.op.epsilon.get()));
        let sum = w.binary_with(BinaryOp::Add, variance, epsilon)?;
        w.unary(UnaryOp::Rsqrt, sum)
    }

    fn centered(&self, w: &mut Writer<'_>, x: InstrId, mean: InstrId) -> Result<InstrId> {
        let mean = self.spread(w, mean)?;
        w.binary(BinaryOp::Subtract, x, mean)
    }

    fn mean(&self, w: &mut Writer<'_>, x: InstrId) -> Result<InstrId> {
        let sum = self.sum(w, x)?;
        self.divided_by_count(w, sum)
    }

    fn sum(&self, w: &mut Writer<'_>, x: InstrId) -> Result<InstrId> {
        let others: Vec<usize> = (0..self.shape.rank()).filter(|&d| d != self.op.feature_index).collect();
        w.sum(x, &others)
    }

    /// Divided by how many elements a feature has: 0 / 0 where there is none.
    fn divided_by_count(&self, w: &mut Writer<'_>, x: InstrId) -> Result<InstrId> {
        let others = self.shape.dims().iter().enumerate().filter(|(d, _)| *d != self.op.feature_index);
        let count: f64 = others.map(|(_, &size)| size as f64).product();
        w.binary_with(BinaryOp::Divide, x, Scalar::Float(count))
    }

    /// A vector of features over the whole array.
    fn spread(&self, w: &mut Writer<'_>, x: InstrId) -> Result<InstrId> {
        w.broadcast(x, self.shape.dims(), &[self.op.feature_index])
    }
}
