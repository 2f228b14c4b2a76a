//! Orders of dimensions.

/// Order of an array's dimensions: position `i` holds dimension `order[i]`. The identity is stored as an empty list, so
/// that it is equal for all ranks and needs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DimOrder(Vec<usize>);

impl DimOrder {
    /// Returns the order of the result of a transpose by `permutation`.
    pub fn new(permutation: Vec<usize>) -> DimOrder {
        if crate::layout::is_identity(&permutation) { DimOrder::default() } else { DimOrder(permutation) }
    }

    /// Whether each dimension is at its own position.
    pub fn is_identity(&self) -> bool {
        self.0.is_empty()
    }

    /// Composes two orders: applies `self` first, then `next`.
    pub fn then(&self, next: &DimOrder) -> DimOrder {
        match (self.is_identity(), next.is_identity()) {
            (true, _) => next.clone(),
            (_, true) => self.clone(),
            _ => DimOrder::new(self.of(&next.0)),
        }
    }

    /// Maps positions in this order to the original dimensions.
    fn of(&self, places: &[usize]) -> Vec<usize> {
        places.iter().map(|&place| self.dimension(place)).collect()
    }

    /// Returns the inverse order.
    pub fn inverse(&self) -> DimOrder {
        DimOrder(crate::layout::inverse(&self.0))
    }

    /// Returns the dimension at a position.
    pub fn dimension(&self, place: usize) -> usize {
        self.0.get(place).copied().unwrap_or(place)
    }

    /// Returns the position of a dimension.
    pub fn place(&self, dimension: usize) -> usize {
        self.0.iter().position(|&d| d == dimension).unwrap_or(dimension)
    }

    /// Permutes a list with one item per dimension into this order.
    pub fn apply<T: Clone>(&self, items: &[T]) -> Vec<T> {
        (0..items.len()).map(|place| items[self.dimension(place)].clone()).collect()
    }

    /// Returns the permutation of a transpose of an array with this rank.
    pub fn permutation(&self, rank: usize) -> Vec<usize> {
        (0..rank).map(|place| self.dimension(place)).collect()
    }
}
