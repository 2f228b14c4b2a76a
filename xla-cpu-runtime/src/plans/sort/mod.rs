//! Sorts and top-k as plain data: positions of rows, and their order. Depends on shapes only, not on LLVM.

use xla_hlo::{ArrayShape, ElementType};
use xla_passes::analysis::element_order::Key;

/// Rows of a row-major array along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Number of rows.
    pub count: usize,
    /// Number of elements of a row.
    pub length: usize,
    /// Stride of a row's elements, in elements.
    pub step: usize,
}

impl Rows {
    /// Returns the rows of an array along `dimension`; no rows if the array has no elements.
    pub fn new(shape: &ArrayShape, dimension: usize) -> Rows {
        let (length, elements) = (shape.dims()[dimension], shape.element_count());
        if elements == 0 {
            return Rows { count: 0, length: 0, step: 1 };
        }
        Rows { count: elements / length, length, step: shape.dims()[dimension + 1..].iter().product() }
    }

    /// Returns the position of the first element of a row in the array.
    pub fn first(&self, row: usize) -> usize {
        row / self.step * self.length * self.step + row % self.step
    }
}

/// Order of a sort.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SortOrder {
    /// Ascending order of integer keys that are computed from one array's elements.
    Key {
        /// Index of the array.
        array: usize,
        /// Computation of the keys.
        key: Key,
    },
    /// Order of a kernel that compares two elements of each array.
    Comparator,
}

/// Sort of arrays in row-major layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SortPlan {
    /// Rows that are sorted, each independently.
    pub rows: Rows,
    /// Size of an element of each array in bytes.
    pub widths: Vec<usize>,
    /// Order of the elements.
    pub order: SortOrder,
}

impl SortPlan {
    /// Encodes the plan as numbers that generated code can carry.
    pub fn to_numbers(&self) -> Vec<i64> {
        let mut numbers = vec![self.rows.count as i64, self.rows.length as i64, self.rows.step as i64];
        match &self.order {
            SortOrder::Key { array, key } => {
                numbers.push(*array as i64);
                numbers.extend(key.to_numbers());
            }
            SortOrder::Comparator => {
                numbers.push(-1);
                numbers.extend([0; Key::NUMBERS]);
            }
        }
        numbers.extend(self.widths.iter().map(|&w| w as i64));
        numbers
    }

    /// Decodes the numbers of [`SortPlan::to_numbers`]; `None` for all other numbers.
    pub fn from_numbers(numbers: &[i64]) -> Option<SortPlan> {
        let (&[count, length, step, array], rest) = numbers.split_first_chunk()?;
        let (key, widths) = rest.split_first_chunk::<{ Key::NUMBERS }>()?;
        let order = match usize::try_from(array) {
            Ok(array) => SortOrder::Key { array, key: Key::from_numbers(key) },
            Err(_) => SortOrder::Comparator,
        };
        let rows = Rows { count: count as usize, length: length as usize, step: step as usize };
        Some(SortPlan { rows, widths: widths.iter().map(|&w| w as usize).collect(), order })
    }
}

/// Search for the best elements of the rows of an array along its last dimension.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TopKPlan {
    /// Number of rows.
    pub rows: usize,
    /// Number of elements of a row.
    pub length: usize,
    /// Number of elements to find.
    pub k: usize,
    /// Size of an element in bytes.
    pub width: usize,
    /// Computation of the keys; the least keys are the best.
    pub key: Key,
}

impl TopKPlan {
    /// Creates the plan for an operand of that shape; `None` for elements without an order.
    pub fn new(operand: &ArrayShape, k: usize, largest: bool) -> Option<TopKPlan> {
        let ty: ElementType = operand.element_type();
        let key = Key::total_order(ty)?;
        let key = if largest { key.reversed() } else { key };
        let Rows { count, length, .. } = Rows::new(operand, operand.rank().checked_sub(1)?);
        Some(TopKPlan { rows: count, length, k, width: ty.byte_width(), key })
    }

    /// Encodes the plan as numbers that generated code can carry.
    pub fn to_numbers(&self) -> Vec<i64> {
        let mut numbers = [self.rows, self.length, self.k, self.width].map(|n| n as i64).to_vec();
        numbers.extend(self.key.to_numbers());
        numbers
    }

    /// Decodes the numbers of [`TopKPlan::to_numbers`]; `None` for all other numbers.
    pub fn from_numbers(numbers: &[i64]) -> Option<TopKPlan> {
        let (&[rows, length, k, width], key) = numbers.split_first_chunk()?;
        let [rows, length, k, width] = [rows, length, k, width].map(|n| n as usize);
        Some(TopKPlan { rows, length, k, width, key: Key::from_numbers(key.first_chunk()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_where_the_dimension_runs() {
        let shape = ArrayShape::new(ElementType::F32, [2, 3, 4]);
        let firsts = |d| -> Vec<usize> {
            let rows = Rows::new(&shape, d);
            (0..rows.count).map(|row| rows.first(row)).collect()
        };
        assert_eq!(firsts(0), (0..12).collect::<Vec<_>>());
        assert_eq!(firsts(1), [0, 1, 2, 3, 12, 13, 14, 15]);
        assert_eq!(firsts(2), [0, 4, 8, 12, 16, 20]);
        assert_eq!(Rows::new(&ArrayShape::new(ElementType::F32, [2, 0]), 0).count, 0);
    }

    #[test]
    fn plans_travel_as_numbers() {
        let key = Key::total_order(ElementType::F64).unwrap().reversed();
        let rows = Rows { count: 7, length: 100, step: 7 };
        for order in [SortOrder::Key { array: 1, key }, SortOrder::Comparator] {
            let plan = SortPlan { rows, widths: vec![4, 8, 16], order };
            assert_eq!(SortPlan::from_numbers(&plan.to_numbers()), Some(plan));
        }
        let plan = TopKPlan::new(&ArrayShape::new(ElementType::BF16, [3, 50]), 4, true).unwrap();
        assert_eq!((plan.rows, plan.length, plan.width), (3, 50, 2));
        assert_eq!(TopKPlan::from_numbers(&plan.to_numbers()), Some(plan));
        assert_eq!(TopKPlan::new(&ArrayShape::new(ElementType::C64, [3]), 1, true), None);
    }
}
