//! Chains of operations that occur in models, and that passes match.

use xla_hlo::CompId;
use xla_hlo::builder::ComputationBuilder;
use xla_hlo::ops::{BinaryOp, Unary, UnaryOp};

use super::callee::CalleeRole;
use super::graph::{Graph, Value};
use super::numbers::{Numbers, epsilon, greatest};
use super::values::Temper;

impl Graph<'_> {
    /// Generates a normalization of rows: a softmax, or a layer normalization.
    pub(super) fn normalize(&mut self) -> Option<Value> {
        let sum = self.callees.iter().find_map(|c| match c.role {
            CalleeRole::Combiner { op: BinaryOp::Add, ty } if ty.is_float() && ty.bit_width() >= 16 => Some((c.id, ty)),
            _ => None,
        });
        let (sum, ty) = sum?;
        let is_row = |v: &Value| v.ty() == ty && v.rank() > 0 && v.shape.element_count() > 0;
        let is_tame = |n: &Numbers| n.is_exact() && n.grid > 0.0 && n.bound <= 4.0;
        let x = match self.any(|v| is_row(v) && is_tame(&v.numbers)) {
            Some(x) if self.random.percent(70) => x,
            _ => {
                let dims = self.dims();
                Some(self.leaf(ty, &dims, Temper::Grid)).filter(|x| is_row(x) && is_tame(&x.numbers))?
            }
        };
        let dims = if self.random.percent(60) { vec![x.rank() - 1] } else { self.random.subset(x.rank()) };
        let length: usize = dims.iter().map(|&d| x.dims()[d]).product();
        // Sums of exponentials and of squares must stay finite.
        if length as f64 * 256.0 > greatest(ty) {
            return None;
        }
        if self.random.percent(50) {
            self.softmax(&x, dims, length, sum)
        } else {
            self.deviations(&x, dims, length, sum)
        }
    }

    fn softmax(&mut self, x: &Value, dims: Vec<usize>, length: usize, sum: CompId) -> Option<Value> {
        let ty = x.ty();
        let zero = self.scalar(ty, 0);
        let kept = kept(x.rank(), &dims);
        // Each quotient is at most 1, with the error of a rounding for each step and of the sum.
        let numbers = Numbers::noisy(ty, 1.0, 0.0, length as f64 + 16.0);
        self.put(numbers, |b| {
            let e = b.instruction(Unary::from(UnaryOp::Exponential), None, [x.id])?;
            let total = b.reduce([e], [zero], dims, sum)?;
            let total = b.broadcast(total, x.dims(), kept)?;
            b.divide(e, total)
        })
    }

    fn deviations(&mut self, x: &Value, dims: Vec<usize>, length: usize, sum: CompId) -> Option<Value> {
        let ty = x.ty();
        let bound = x.numbers.bound;
        // Sums may lose one rounding for each element; the error of later values is of that order.
        let lost = (length as f64 + 4.0) * epsilon(ty) * bound;
        let numbers = Numbers::noisy(ty, 4.0 * bound, 16.0 * bound * bound * lost, 16.0);
        let (zero, one) = (self.scalar(ty, 0), self.scalar(ty, 1));
        let count = self.scalar(ty, length as i64);
        let kept = kept(x.rank(), &dims);
        self.put(numbers, |b| {
            let wide = |b: &mut ComputationBuilder<'_>, v| b.broadcast(v, x.dims(), kept.clone());
            let total = b.reduce([x.id], [zero], dims.clone(), sum)?;
            let (total, count) = (wide(b, total)?, b.broadcast(count, x.dims(), [])?);
            let mean = b.divide(total, count)?;
            let centered = b.subtract(x.id, mean)?;
            let square = b.multiply(centered, centered)?;
            let total = b.reduce([square], [zero], dims, sum)?;
            let variance = wide(b, total)?;
            let variance = b.divide(variance, count)?;
            let one = b.broadcast(one, x.dims(), [])?;
            let variance = b.add(variance, one)?;
            let scale = b.rsqrt(variance)?;
            b.multiply(centered, scale)
        })
    }
}

/// Returns the dimensions that are not reduced.
fn kept(rank: usize, dims: &[usize]) -> Vec<usize> {
    (0..rank).filter(|d| !dims.contains(d)).collect()
}
