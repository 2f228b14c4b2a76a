//! Convolutions with any order of dimensions, groups and windows.

use xla_hlo::ElementType;
use xla_hlo::ops::{Convolution, ConvolutionDims, Window};

use super::graph::{Graph, Value};
use super::reductions::sum_of_products;

/// Maximum number of multiplications of a convolution.
const MOST_WORK: usize = 400_000;

impl Graph<'_> {
    pub(super) fn convolution(&mut self) -> Option<Value> {
        let rank = self.random.pick(&[0, 1, 1, 2, 2, 2, 2, 3]);
        let (groups, by_images) = (self.random.pick(&[1, 1, 1, 2, 3, 8]), self.random.percent(40));
        let (images, features) = if by_images { (groups, 1) } else { (1, groups) };
        let window = Window { dims: (0..rank).map(|_| self.window_dim()).collect() };
        let (channels, outputs) = (self.channels(), self.channels());
        // Sizes of each array: its first two named dimensions, then the spatial ones.
        let bases: Vec<usize> = (0..rank).map(|_| self.random.pick(&[1, 2, 3, 5, 7, 8, 13, 28])).collect();
        let input = [vec![self.channels() * images, channels * features], bases].concat();
        let sizes: Vec<usize> = window.dims.iter().map(|d| d.size).collect();
        let kernel = [vec![channels, outputs * groups], sizes].concat();
        let orders = [0; 3].map(|_| self.random.permutation(rank + 2));
        let mut op = Convolution::new(window, labels(&orders));
        (op.feature_group_count, op.batch_group_count) = (features, images);
        let placed = |sizes: &[usize], order: &[usize]| order.iter().map(|&i| sizes[i]).collect::<Vec<_>>();
        let products = channels * op.window.dims.iter().map(|d| d.size).product::<usize>();
        let positions = op.window.output_dims(&input[2..]).ok()?;
        let results = positions.iter().product::<usize>() * outputs * groups * input[0];
        if !self.is_small(&input) || !self.is_small(&kernel) || results.max(1) * products.max(1) > MOST_WORK {
            return None;
        }
        let ty = self.ty();
        let lhs = self.tame(ty, &placed(&input, &orders[0]));
        let rhs = self.tame(ty, &placed(&kernel, &orders[1]));
        let to = self.product_type(ty);
        let numbers = sum_of_products(to, products, &lhs, &rhs);
        self.put(numbers, |b| b.convolution(lhs.id, rhs.id, op, Some(to)))
    }

    fn channels(&mut self) -> usize {
        if self.random.percent(2) { 0 } else { self.random.pick(&[1, 1, 2, 3, 4, 7, 8, 16, 17, 33]) }
    }

    /// Returns an array whose products can be summed.
    fn tame(&mut self, ty: ElementType, dims: &[usize]) -> Value {
        self.like(ty, dims, |numbers| super::reductions::is_tame(ty, numbers))
    }
}

/// Returns the roles of dimensions, if each array has its two named ones and then the spatial ones, permuted by
/// `orders`.
fn labels(orders: &[Vec<usize>; 3]) -> ConvolutionDims {
    let place = |array: usize, i: usize| orders[array].iter().position(|&o| o == i).unwrap_or(i);
    let spatial = |array: usize| (2..orders[array].len()).map(|i| place(array, i)).collect();
    ConvolutionDims {
        input_batch: place(0, 0),
        input_feature: place(0, 1),
        input_spatial: spatial(0),
        kernel_input_feature: place(1, 0),
        kernel_output_feature: place(1, 1),
        kernel_spatial: spatial(1),
        output_batch: place(2, 0),
        output_feature: place(2, 1),
        output_spatial: spatial(2),
    }
}
