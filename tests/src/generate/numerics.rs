//! Ragged dots, scans and batch normalizations.

use xla_hlo::ops::{BatchNormKind, DotDims, RaggedDot, Scan};
use xla_hlo::{ElementKind, ElementType, InstrId};

use super::callee::CalleeRole;
use super::graph::{Graph, Value};
use super::numbers::{Numbers, epsilon};
use super::reductions::{is_tame, reduce, sum_of_products};
use super::values::Temper;

impl Graph<'_> {
    /// Generates a `ragged-dot`: a matrix, or a batch of them, whose rows or columns are divided into groups.
    pub(super) fn ragged_dot(&mut self) -> Option<Value> {
        let ty = self.ty();
        if ty == ElementType::Pred {
            return None;
        }
        let (batch, m, k, n) = (self.random.percent(40).then(|| self.size()), self.size(), self.size(), self.size());
        let groups = self.random.between(1, 4);
        let batch: Vec<usize> = batch.into_iter().collect();
        let contracted = self.random.percent(40);
        let rhs_dims = if contracted { vec![k, n] } else { vec![groups, k, n] };
        let lhs_dims = [batch.clone(), vec![m, k]].concat();
        let rhs_dims = [batch.clone(), rhs_dims].concat();
        let first = batch.len();
        let work = lhs_dims.iter().product::<usize>() * n * groups;
        if work > 200_000 || !self.is_small(&rhs_dims) {
            return None;
        }
        let lhs = self.like(ty, &lhs_dims, |x| is_tame(ty, x));
        let rhs = self.like(ty, &rhs_dims, |x| is_tame(ty, x));
        let size_type = self.random.pick(&[ElementType::S32, ElementType::U8, ElementType::S64]);
        let own_sizes = !batch.is_empty() && self.random.percent(50);
        let size_dims = if own_sizes { [batch, vec![groups]].concat() } else { vec![groups] };
        let sizes = self.like(size_type, &size_dims, |x| x.is_exact());
        let batch: Vec<usize> = (0..first).collect();
        let op = RaggedDot {
            dims: DotDims {
                lhs_batch: batch.clone(),
                rhs_batch: batch,
                lhs_contracting: vec![first + 1],
                rhs_contracting: vec![first + usize::from(!contracted)],
            },
            ragged_dimension: if contracted { first + 1 } else { first },
            group_dimension: (!contracted).then_some(first),
            precision: Vec::new(),
        };
        let numbers = sum_of_products(ty, k, &lhs, &rhs);
        self.put(numbers, |b| b.ragged_dot(op, lhs.id, rhs.id, sizes.id))
    }

    /// Generates a scan of a vector.
    pub(super) fn scan(&mut self) -> Option<Value> {
        let callees = self.callees;
        let callee = self.random.pick(&callees.iter().collect::<Vec<_>>());
        let CalleeRole::Combiner { op, ty } = callee.role else { return None };
        let x = self.reduced(op, ty)?;
        let (&[length], false) = (x.dims(), ty == ElementType::F8E8M0FNU) else { return None };
        let init = self.initial(op, ty);
        let numbers = reduce(op, ty, length, &x.numbers, &init.numbers);
        let scan = Scan {
            dimension: 0,
            num_carries: 1,
            is_reverse: self.random.percent(50),
            is_associative: false,
            computation: callee.id,
        };
        self.put(numbers, |b| b.scan(scan, [x.id], [init.id]))
    }

    /// Generates a batch normalization, or its gradient, with an epsilon large enough to be well-conditioned.
    pub(super) fn batch_norm(&mut self) -> Option<Value> {
        use ElementType::{BF16, F16, F32, F64};
        let ty = self.random.pick(&[F32, F32, F64, F16, BF16]);
        let mut dims = self.dims();
        if dims.is_empty() {
            dims = vec![self.size()];
        }
        let feature = self.random.below(dims.len());
        let features = dims[feature];
        let count: usize = dims.iter().product::<usize>().checked_div(features)?;
        if count == 0 {
            return None;
        }
        let x = self.leaf(ty, &dims, Temper::Grid);
        let vectors = [(); 2].map(|()| self.leaf(ty, &[features], Temper::Grid));
        if ![&x, &vectors[0], &vectors[1]].into_iter().all(is_small) {
            return None;
        }
        // Sums, which are in f32 at least, may lose one rounding for each element; the error of later values is of that
        // order.
        let sum = if ty.bit_width() < 32 { F32 } else { ty };
        let lost = (count as f64 + 4.0) * epsilon(sum) * 4.0;
        match self.random.below(3) {
            0 => self.batch_norm_training(&x, &vectors, feature, lost),
            1 => self.batch_norm_inference(&x, &vectors, feature),
            _ => self.batch_norm_grad(&x, &vectors, feature, lost * count as f64),
        }
    }

    fn batch_norm_training(&mut self, x: &Value, vectors: &[Value; 2], feature: usize, lost: f64) -> Option<Value> {
        let [scale, offset] = vectors;
        let operands = [x.id, scale.id, offset.id];
        let all = self.b.batch_norm(BatchNormKind::Training, operands, 1.0, feature).ok()?;
        self.put(Numbers::noisy(x.ty(), 16.0, 8.0 * lost, 4.0), |b| b.get_tuple_element(all, 2));
        self.put(Numbers::noisy(x.ty(), 4.0, lost, 4.0), |b| b.get_tuple_element(all, 1));
        self.put(Numbers::noisy(x.ty(), 40.0, 64.0 * lost, 8.0), |b| b.get_tuple_element(all, 0))
    }

    /// Generates an inference. Variances are squares, so that their roots exist.
    fn batch_norm_inference(&mut self, x: &Value, vectors: &[Value; 2], feature: usize) -> Option<Value> {
        let [scale, offset] = vectors;
        let (mean, variance) = self.statistics(x.ty(), scale.dims())?;
        let operands = [x.id, scale.id, offset.id, mean.id, variance];
        // At most (4 + 4) * 4 + 4.
        let numbers = Numbers::noisy(x.ty(), 36.0, 128.0 * epsilon(ElementType::F32), 8.0);
        self.put(numbers, |b| b.batch_norm(BatchNormKind::Inference, operands, 1.0, feature))
    }

    /// Returns means, and variances from 0 to 16.
    fn statistics(&mut self, ty: ElementType, dims: &[usize]) -> Option<(Value, InstrId)> {
        let [mean, root] = [(); 2].map(|()| self.leaf(ty, dims, Temper::Grid));
        let variance = [&mean, &root].into_iter().all(is_small).then(|| self.b.multiply(root.id, root.id).ok())??;
        Some((mean, variance))
    }

    fn batch_norm_grad(&mut self, x: &Value, vectors: &[Value; 2], feature: usize, lost: f64) -> Option<Value> {
        let scale = &vectors[0];
        let (mean, variance) = self.statistics(x.ty(), scale.dims())?;
        let gradient = self.leaf(x.ty(), x.dims(), Temper::Grid);
        if !is_small(&gradient) {
            return None;
        }
        let operands = [x.id, scale.id, mean.id, variance, gradient.id];
        let all = self.b.batch_norm(BatchNormKind::Grad, operands, 1.0, feature).ok()?;
        let count = x.shape.element_count() as f64 / scale.shape.element_count() as f64;
        let ty = x.ty();
        // Sums of gradients, and of their products with differences from the mean, each at most 8.
        self.put(Numbers::noisy(ty, 4.0 * count, 4.0 * lost, 4.0), |b| b.get_tuple_element(all, 2));
        self.put(Numbers::noisy(ty, 32.0 * count, 32.0 * lost, 4.0), |b| b.get_tuple_element(all, 1));
        // 4 * (4 + 4 + 8 * 8 * 4).
        self.put(Numbers::noisy(ty, 1100.0, 1100.0 * lost, 8.0), |b| b.get_tuple_element(all, 0))
    }
}

/// Whether numbers are small and not all 0.
fn is_small(x: &Value) -> bool {
    x.ty().kind() == ElementKind::Float && x.numbers.is_exact() && x.numbers.bound <= 4.0 && x.numbers.bound > 0.0
}
