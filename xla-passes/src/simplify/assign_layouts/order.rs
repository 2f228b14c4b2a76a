//! Orders of dimensions.

/// An order of an array's dimensions: in place `i` stands dimension `order[i]`. The order that they have already is
/// empty, so that it is the same for every rank and costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DimOrder(Vec<usize>);

impl DimOrder {
    /// The order of the result of a transpose by `permutation`.
    pub fn new(permutation: Vec<usize>) -> DimOrder {
        if crate::layout::is_identity(&permutation) { DimOrder::default() } else { DimOrder(permutation) }
    }

    pub fn is_identity(&self) -> bool {
        self.0.is_empty()
    }

    /// The order of what is put into this order, and that into `next`.
    pub fn then(&self, next: &DimOrder) -> DimOrder {
        match (self.is_identity(), next.is_identity()) {
            (true, _) => next.clone(),
            (_, true) => self.clone(),
            _ => DimOrder::new(self.of(&next.0)),
        }
    }

    /// Those dimensions, as they are called before they were put in order.
    fn of(&self, places: &[usize]) -> Vec<usize> {
        places.iter().map(|&place| self.dimension(place)).collect()
    }

    /// The inverse order.
    pub fn inverse(&self) -> DimOrder {
        DimOrder(crate::layout::inverse(&self.0))
    }

    /// The dimension in a place.
    pub fn dimension(&self, place: usize) -> usize {
        self.0.get(place).copied().unwrap_or(place)
    }

    /// The place of a dimension.
    pub fn place(&self, dimension: usize) -> usize {
        self.0.iter().position(|&d| d == dimension).unwrap_or(dimension)
    }

    /// One item for each dimension, in this order.
    pub fn apply<T: Clone>(&self, items: &[T]) -> Vec<T> {
        (0..items.len()).map(|place| items[self.dimension(place)].clone()).collect()
    }

    /// As a transpose of an array of that rank says it.
    pub fn permutation(&self, rank: usize) -> Vec<usize> {
        (0..rank).map(|place| self.dimension(place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::DimOrder;

    #[test]
    fn orders_follow_one_another_as_transposes_do() {
        let (a, b) = (DimOrder::new(vec![1, 2, 0]), DimOrder::new(vec![0, 2, 1]));
        let items = ['x', 'y', 'z'];
        assert_eq!(a.then(&b).apply(&items), b.apply(&a.apply(&items)));
        assert_eq!(a.apply(&items), ['y', 'z', 'x']);
        assert!(a.then(&a.inverse()).is_identity() && a.inverse().then(&a).is_identity());
        assert_eq!((a.dimension(0), a.place(1)), (1, 0));
        assert_eq!((DimOrder::default().place(2), DimOrder::default().permutation(2)), (2, vec![0, 1]));
    }
}
