//! Rearrangement of arrays to the layout of a library and back, by a helper kernel.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::PadDim;
use xla_hlo::{ArrayShape, Literal, Result, Shape, VerifiedModule};

/// Maximum growth of an array by zero padding.
const MOST_GROWTH: usize = 4;

/// Permutation of an array's dimensions, with reversed dimensions and zero padding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rearrangement {
    from: ArrayShape,
    to: ArrayShape,
    /// Dimensions of `from`, in the order of `to`.
    order: Vec<usize>,
    /// Dimensions of `to` that are reversed.
    reversed: Vec<usize>,
    /// Zero padding before and after each dimension of `to`; a negative number removes elements.
    padding: Vec<(i64, i64)>,
}

impl Rearrangement {
    /// Creates the rearrangement of an array; `None` if it is invalid, or if most of the result would be zeros.
    pub fn new(
        from: ArrayShape,
        order: Vec<usize>,
        reversed: Vec<usize>,
        padding: Vec<(i64, i64)>,
    ) -> Option<Rearrangement> {
        let size = |(&dimension, &(low, high)): (&usize, &(i64, i64))| {
            let size = i64::try_from(*from.dims().get(dimension)?).ok()?;
            usize::try_from(size.checked_add(low)?.checked_add(high)?).ok()
        };
        let dims = order.iter().zip(&padding).map(size).collect::<Option<Vec<usize>>>()?;
        let most = from.element_count().checked_mul(MOST_GROWTH)?;
        let count = dims.iter().try_fold(1usize, |count, &size| count.checked_mul(size))?;
        let to = ArrayShape::new(from.element_type(), dims);
        (count <= most).then_some(Rearrangement { from, to, order, reversed, padding })
    }

    /// Whether the rearrangement changes no byte.
    pub fn is_nothing(&self) -> bool {
        // The order and direction of dimensions of size 1 do not matter.
        let matters = |dimension: &usize| self.from.dims()[*dimension] > 1;
        let order: Vec<usize> = self.order.iter().copied().filter(matters).collect();
        let is_kept = |d: &usize| self.to.dims()[*d] <= 1;
        order.is_sorted() && self.reversed.iter().all(is_kept) && self.padding.iter().all(|&pads| pads == (0, 0))
    }

    /// Returns the shape of the array before the rearrangement.
    pub fn from(&self) -> &ArrayShape {
        &self.from
    }

    /// Returns the shape of the array after the rearrangement.
    pub fn to(&self) -> &ArrayShape {
        &self.to
    }

    /// Returns the program that rearranges its parameter.
    pub fn program(&self) -> Result<VerifiedModule> {
        let mut module = ModuleBuilder::new("rearranged");
        let mut b = module.computation("main");
        let mut value = b.parameter(Shape::Array(self.from.clone()))?;
        if !self.order.is_sorted() {
            value = b.transpose(value, self.order.clone())?;
        }
        if !self.reversed.is_empty() {
            value = b.reverse(value, self.reversed.clone())?;
        }
        if self.padding.iter().any(|&pads| pads != (0, 0)) {
            let zero = b.constant(Literal::zeros(&ArrayShape::new(self.from.element_type(), []))?)?;
            let dims = self.padding.iter().map(|&(low, high)| PadDim { low, high, interior: 0 });
            value = b.pad(value, zero, dims.collect::<Vec<_>>())?;
        }
        let main = b.finish(value);
        module.finish(main)
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::ElementType::F32;
    use xla_hlo::Scalar;
    use xla_hlo::eval::evaluate;

    use super::*;

    fn shape(dims: &[usize]) -> ArrayShape {
        ArrayShape::new(F32, dims)
    }

    #[test]
    fn a_program_rearranges() {
        // A transposed array with its rows reversed, a row of zeros added before, and the last row removed.
        let turned = Rearrangement::new(shape(&[2, 3]), vec![1, 0], vec![0], vec![(1, -1), (0, 0)]).unwrap();
        assert_eq!(turned.to().dims(), [3, 2]);
        let input = Literal::from_fn(turned.from(), |i| Scalar::Float(i as f64 + 1.0)).unwrap();
        let result = evaluate(&turned.program().unwrap(), vec![input]).unwrap();
        assert_eq!(crate::lowering::libraries::reference::numbers(&result), [0.0, 0.0, 3.0, 6.0, 2.0, 5.0]);
    }

    #[test]
    fn what_changes_no_byte_is_nothing() {
        let of = |dims: &[usize], order: &[usize], reversed: &[usize], pads: (i64, i64)| {
            let padding = vec![pads; dims.len()];
            Rearrangement::new(shape(dims), order.to_vec(), reversed.to_vec(), padding).unwrap().is_nothing()
        };
        assert!(of(&[2, 3], &[0, 1], &[], (0, 0)));
        assert!(of(&[2, 1, 3], &[1, 0, 2], &[0], (0, 0)));
        assert!(!of(&[2, 3], &[1, 0], &[], (0, 0)));
        assert!(!of(&[2, 3], &[0, 1], &[1], (0, 0)));
        assert!(!of(&[2, 3], &[0, 1], &[], (0, 1)));
    }

    #[test]
    fn sizes_are_checked() {
        let padded = |low, high| Rearrangement::new(shape(&[8]), vec![0], vec![], vec![(low, high)]);
        assert!(padded(12, 12).is_some());
        assert!(padded(13, 12).is_none(), "more than four times the array");
        assert!(padded(-5, -4).is_none());
        assert!(padded(i64::MAX, 1).is_none());
    }
}
