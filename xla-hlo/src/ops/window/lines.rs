//! Separable window reductions, one dimension at a time, for associative and commutative combiners.
//!
//! The cost of a window of sizes w1 x w2 x ... is then the sum and not the product of the costs of its dimensions.
//! Along one dimension, a binary tree computes the reduction of any range in logarithmic time: a cumulative sum, whose
//! windows are as long as the array, takes n log n steps and has log n rounding errors.

use super::WindowDim;
use super::positions::Windows;
use crate::{Literal, Result, Scalar};

/// Returns the reduction of each window's elements in row-major order, `None` for an empty window. Reduces dimensions
/// in the given order.
pub(super) fn reduces_separably(
    windows: &Windows<'_>,
    order: &[usize],
    array: &Literal,
    mut pair: impl FnMut(Scalar, Scalar) -> Result<Scalar>,
) -> Result<Vec<Option<Scalar>>> {
    if windows.output.contains(&0) {
        return Ok(Vec::new());
    }
    let mut dims = windows.base.to_vec();
    let mut values: Vec<Option<Scalar>> =
        (0..array.array_shape().element_count()).map(|i| Some(array.get(i))).collect();
    let mut pair = |a: Option<Scalar>, b: Option<Scalar>| match (a, b) {
        (Some(a), Some(b)) => pair(a, b).map(Some),
        (one, other) => Ok(one.or(other)),
    };
    for &d in order {
        values = reduced_dimension(&windows.dims[d], d, &dims, windows.output[d], &values, &mut pair)?;
        dims[d] = windows.output[d];
    }
    Ok(values)
}

/// Replaces dimension `d` of an array by the reductions of its windows along that dimension.
fn reduced_dimension(
    window: &WindowDim,
    d: usize,
    dims: &[usize],
    output: usize,
    values: &[Option<Scalar>],
    pair: &mut impl FnMut(Option<Scalar>, Option<Scalar>) -> Result<Option<Scalar>>,
) -> Result<Vec<Option<Scalar>>> {
    // Products saturate only if another dimension has size 0.
    let count = |dims: &[usize]| dims.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    let (outer, base, inner) = (count(&dims[..d]), dims[d], count(&dims[d + 1..]));
    if outer == 0 || inner == 0 {
        return Ok(Vec::new());
    }
    let mut result = vec![None; outer * output * inner];
    for line in 0..outer * inner {
        let (o, i) = (line / inner, line % inner);
        let elements = (0..base).map(|k| values[(o * base + k) * inner + i]);
        let tree = Tree::new(elements, pair)?;
        for k in 0..output {
            let reduced = match window.base_range(k, base) {
                Some(range) => tree.reduce(range, pair)?,
                None => window.base_indices(k, base).into_iter().try_fold(None, |sum, at| pair(sum, tree.leaf(at)))?,
            };
            result[(o * output + k) * inner + i] = reduced;
        }
    }
    Ok(result)
}

/// Binary tree over the elements of a line, which are the leaves. Inner nodes reduce their children; node 1 is the
/// root.
struct Tree {
    nodes: Vec<Option<Scalar>>,
    leaves: usize,
}

impl Tree {
    fn new(
        elements: impl Iterator<Item = Option<Scalar>>,
        pair: &mut impl FnMut(Option<Scalar>, Option<Scalar>) -> Result<Option<Scalar>>,
    ) -> Result<Tree> {
        let elements: Vec<_> = elements.collect();
        let leaves = elements.len();
        let mut nodes = vec![None; leaves];
        nodes.extend(elements);
        for i in (1..leaves).rev() {
            nodes[i] = pair(nodes[2 * i], nodes[2 * i + 1])?;
        }
        Ok(Tree { nodes, leaves })
    }

    fn leaf(&self, i: usize) -> Option<Scalar> {
        self.nodes[self.leaves + i]
    }

    /// Reduces a range of leaves: walks up from both ends and combines the nodes that are fully inside the range.
    fn reduce(
        &self,
        range: std::ops::Range<usize>,
        pair: &mut impl FnMut(Option<Scalar>, Option<Scalar>) -> Result<Option<Scalar>>,
    ) -> Result<Option<Scalar>> {
        let (mut left, mut right) = (None, None);
        let (mut begin, mut end) = (range.start + self.leaves, range.end + self.leaves);
        while begin < end {
            if begin % 2 == 1 {
                left = pair(left, self.nodes[begin])?;
                begin += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                right = pair(self.nodes[end], right)?;
            }
            begin /= 2;
            end /= 2;
        }
        pair(left, right)
    }
}
