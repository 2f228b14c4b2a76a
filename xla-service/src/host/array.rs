//! Strided arrays in callers' memory, copied to and from dense arrays in a host layout.

use std::borrow::Cow;
use std::ops::Range;

use xla_hlo::{ArrayShape, ElementType, Error, Layout, Result};

use super::strided::{Dim, StridedCopy};

/// Array in a caller's memory, like a numpy array: with any strides, including negative and zero ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StridedShape<'a> {
    /// Element type. Elements of less than a byte take one byte each.
    pub element_type: ElementType,
    /// Sizes of the dimensions.
    pub dims: &'a [usize],
    /// Distance in bytes between neighbouring elements of each dimension; `None` for a dense row-major array.
    pub strides: Option<&'a [i64]>,
    /// Byte offset of the element with index zero; nonzero if strides are negative.
    pub offset: usize,
}

/// Extent in memory of an array with strides, relative to its element with index zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes before the element with index zero.
    pub before: usize,
    /// Bytes from the start of that element on.
    pub after: usize,
}

/// Order of an array's elements in a caller's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostOrder<'a> {
    /// Dense, with the last dimension varying fastest.
    #[default]
    RowMajor,
    /// Dense; lists the dimensions from the fastest to the slowest varying one.
    MinorToMajor(&'a [usize]),
    /// Distance in bytes between neighbouring elements of each dimension. No stride is negative; the element with index
    /// zero comes first.
    Strides(&'a [i64]),
}

impl<'a> StridedShape<'a> {
    /// Creates a dense row-major array.
    pub fn dense(element_type: ElementType, dims: &'a [usize]) -> StridedShape<'a> {
        StridedShape { element_type, dims, strides: None, offset: 0 }
    }

    /// Returns the extent of the array. [`Error::InvalidArgument`] if it exceeds the address space, or if the number of
    /// strides differs from the number of dimensions.
    pub fn extent(&self) -> Result<Extent> {
        let StridedShape { element_type, dims, strides, .. } = *self;
        let wrong = || Error::invalid_argument(format!("an array of {dims:?} with strides {strides:?} is too large"));
        if dims.contains(&0) {
            return Ok(Extent::default());
        }
        let strides = strides_of(element_type, dims, strides)?;
        let (mut before, mut after) = (0i64, element_type.byte_width() as i64);
        for (&size, &stride) in dims.iter().zip(&*strides) {
            let last = i64::try_from(size - 1).ok().and_then(|last| last.checked_mul(stride)).ok_or_else(wrong)?;
            let side = if last < 0 { &mut before } else { &mut after };
            *side = side.checked_add(last.checked_abs().ok_or_else(wrong)?).ok_or_else(wrong)?;
        }
        let bytes = |side: i64| usize::try_from(side).map_err(|_| wrong());
        Ok(Extent { before: bytes(before)?, after: bytes(after)? })
    }

    /// Returns the dimension order, fastest first, if the array is dense. Dimensions of size 1 have their row-major
    /// position.
    pub fn dense_order(&self) -> Option<Vec<usize>> {
        let row_major = || (0..self.dims.len()).rev().collect::<Vec<_>>();
        let Some(strides) = self.strides else { return Some(row_major()) };
        if strides.len() != self.dims.len() {
            return None;
        }
        if self.dims.contains(&0) {
            return Some(row_major());
        }
        let mut order: Vec<usize> = (0..self.dims.len()).rev().filter(|&d| self.dims[d] != 1).collect();
        order.sort_by_key(|&d| strides[d]);
        let mut expected = self.element_type.byte_width() as i64;
        for &d in &order {
            if strides[d] != expected {
                return None;
            }
            expected = expected.checked_mul(self.dims[d] as i64)?;
        }
        Some(normal_order(self.dims, order))
    }

    /// Copies the elements from `source` to `target`, a dense array of this shape in its layout.
    pub fn copy_to(&self, source: &[u8], shape: &ArrayShape, target: &mut [u8]) -> Result<()> {
        check_target(shape, target.len())?;
        if shape.element_type() != self.element_type || shape.dims() != self.dims {
            let (found, dims) = (self.element_type, self.dims);
            return Err(Error::invalid_argument(format!("an array of {found} {dims:?} does not fit {shape}")));
        }
        self.check_inside(source.len())?;
        if let Some(dense) = self.dense_bytes(shape).and_then(|range| source.get(range)) {
            target.copy_from_slice(dense);
            return Ok(());
        }
        let from = strides_of(self.element_type, self.dims, self.strides)?;
        let to = dense_strides(shape);
        copy(shape, &from, &to).run(source, self.offset, target, 0);
        Ok(())
    }

    /// Returns the byte range of the array if it is dense in the dimension order of `shape`.
    pub(crate) fn dense_bytes(&self, shape: &ArrayShape) -> Option<Range<usize>> {
        // Fast path: most arrays are small and row-major on both sides.
        let is_row_major = self.is_row_major() && shape.layout().is_none_or(Layout::is_row_major);
        let is_dense = is_row_major || self.dense_order()? == normal_order(self.dims, shape.minor_to_major());
        is_dense.then(|| self.offset..self.offset.saturating_add(shape.byte_size()))
    }

    /// Whether the elements are dense and in row-major order.
    fn is_row_major(&self) -> bool {
        let Some(strides) = self.strides else { return true };
        let mut expected = self.element_type.byte_width() as i64;
        strides.len() == self.dims.len()
            && strides.iter().zip(self.dims).rev().all(|(&stride, &size)| {
                let is_next = stride == expected || size == 1;
                expected = expected.saturating_mul(size as i64);
                is_next
            })
    }

    /// Returns an error if an element is outside a memory of this size.
    pub(crate) fn check_inside(&self, bytes: usize) -> Result<()> {
        let extent = self.extent()?;
        let is_inside =
            self.offset >= extent.before && self.offset.checked_add(extent.after).is_some_and(|end| end <= bytes);
        if is_inside || self.dims.contains(&0) {
            return Ok(());
        }
        let StridedShape { element_type, dims, strides, offset } = self;
        Err(Error::invalid_argument(format!(
            "an array of {element_type} {dims:?} with strides {strides:?}, whose first element is at byte {offset}, is \
             not inside of {bytes} bytes"
        )))
    }
}

impl HostOrder<'_> {
    /// Returns the bytes that an array of this shape takes in this order, gaps included.
    pub fn byte_size(&self, shape: &ArrayShape) -> Result<usize> {
        let strides = self.strides(shape)?;
        let (element_type, dims) = (shape.element_type(), shape.dims());
        let extent = StridedShape { element_type, dims, strides: Some(&strides), offset: 0 }.extent()?;
        if extent.before > 0 {
            return Err(Error::invalid_argument(format!("strides {strides:?} of a target must not be negative")));
        }
        Ok(extent.after)
    }

    /// Copies a dense array of this shape, in its layout, to `target` in this order. Gaps in `target` stay unchanged.
    pub fn copy_from(&self, shape: &ArrayShape, source: &[u8], target: &mut [u8]) -> Result<()> {
        check_target(shape, source.len())?;
        let needed = self.byte_size(shape)?;
        if target.len() < needed {
            let found = target.len();
            return Err(Error::invalid_argument(format!("{shape} takes {needed} bytes, but the target has {found}")));
        }
        copy(shape, &dense_strides(shape), &self.strides(shape)?).run(source, 0, target, 0);
        Ok(())
    }

    fn strides(&self, shape: &ArrayShape) -> Result<Cow<'_, [i64]>> {
        let dims = shape.dims();
        match *self {
            HostOrder::RowMajor => strides_of(shape.element_type(), dims, None),
            HostOrder::Strides(strides) => strides_of(shape.element_type(), dims, Some(strides)),
            HostOrder::MinorToMajor(order) => {
                let layout = Layout::from_minor_to_major(order.to_vec());
                if !layout.is_permutation_of(dims.len()) {
                    let rank = dims.len();
                    return Err(Error::invalid_argument(format!("{order:?} is not an order of {rank} dimensions")));
                }
                Ok(Cow::Owned(dense_strides(&shape.clone().with_layout(Some(layout)))))
            }
        }
    }
}

/// Moves dimensions of size 1, whose position is arbitrary, to their row-major position.
fn normal_order(dims: &[usize], order: Vec<usize>) -> Vec<usize> {
    let mut others = order.into_iter().filter(|&d| dims[d] != 1);
    let row_major = (0..dims.len()).rev();
    row_major.map(|d| if dims[d] == 1 { d } else { others.next().unwrap_or(d) }).collect()
}

/// Plans the copy of an array between two sets of strides.
pub(super) fn copy(shape: &ArrayShape, from: &[i64], to: &[i64]) -> StridedCopy {
    let dims = shape.dims().iter().zip(from.iter().zip(to));
    let dims = dims.map(|(&size, (&from, &to))| Dim { size, from, to });
    StridedCopy::new(shape.element_type().byte_width(), dims)
}

/// Returns the strides in bytes of a dense array in the layout of its shape.
pub(super) fn dense_strides(shape: &ArrayShape) -> Vec<i64> {
    let (minor_to_major, width) = (shape.minor_to_major(), shape.element_type().byte_width());
    xla_hlo::strides(shape.dims(), &minor_to_major).into_iter().map(|stride| (stride * width) as i64).collect()
}

fn strides_of<'a>(element_type: ElementType, dims: &[usize], strides: Option<&'a [i64]>) -> Result<Cow<'a, [i64]>> {
    match strides {
        None => {
            let shape = ArrayShape::new(element_type, dims.to_vec());
            shape.checked_element_count()?;
            Ok(Cow::Owned(dense_strides(&shape)))
        }
        Some(strides) if strides.len() == dims.len() => Ok(Cow::Borrowed(strides)),
        Some(strides) => Err(Error::invalid_argument(format!(
            "the number of strides ({}) differs from the number of dimensions ({})",
            strides.len(),
            dims.len()
        ))),
    }
}

/// Returns an error unless a dense array of this shape has this size in bytes.
pub(super) fn check_target(shape: &ArrayShape, bytes: usize) -> Result<()> {
    let expected = shape.byte_size();
    if bytes == expected {
        return Ok(());
    }
    Err(Error::internal(format!("{shape} takes {expected} bytes, but its memory or literal has {bytes}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates arrays in memory: strides in any order, with gaps, which may be negative or zero.
    fn arrays() -> impl Strategy<Value = (ElementType, Vec<usize>, Vec<i64>, Vec<usize>)> {
        let types = [ElementType::Pred, ElementType::BF16, ElementType::F32, ElementType::S64, ElementType::C128];
        let dims = prop::collection::vec((0usize..20, -2i64..3, 0usize..3), 0..4);
        (prop::sample::select(types.to_vec()), dims, any::<prop::sample::Index>()).prop_map(|(ty, dims, order)| {
            let rank = dims.len();
            let mut places: Vec<usize> = (0..rank).collect();
            places.rotate_left(if rank == 0 { 0 } else { order.index(rank) });
            // Strides of a dense array in that order, times a factor, plus a gap.
            let mut strides = vec![0; rank];
            let mut next = ty.byte_width() as i64;
            for &d in &places {
                let (size, factor, gap) = dims[d];
                strides[d] = factor * next;
                next = next * size.max(1) as i64 * factor.abs().max(1) + gap as i64;
            }
            let mut target: Vec<usize> = (0..rank).collect();
            target.rotate_right(if rank == 0 { 0 } else { order.index(rank) / 2 + 1 } % rank.max(1));
            (ty, dims.iter().map(|&(size, ..)| size).collect(), strides, target)
        })
    }

    proptest! {
        #[test]
        fn elements_arrive_at_their_indices((ty, dims, strides, order) in arrays()) {
            let mut array = StridedShape { element_type: ty, dims: &dims, strides: Some(&strides), offset: 0 };
            let extent = array.extent().unwrap();
            array.offset = extent.before;
            let source: Vec<u8> = (0..extent.before + extent.after).map(|i| (i * 7 % 251) as u8).collect();
            let layout = Layout::from_minor_to_major(order);
            let shape = ArrayShape::new(ty, dims.clone()).with_layout(Some(layout));
            let mut dense = vec![0; shape.byte_size()];
            array.copy_to(&source, &shape, &mut dense).unwrap();
            let (width, to) = (ty.byte_width(), dense_strides(&shape));
            for i in 0..shape.element_count() {
                let index = xla_hlo::multi_index(&dims, i);
                let place = |strides: &[i64]| -> i64 { index.iter().zip(strides).map(|(&i, s)| i as i64 * s).sum() };
                let (from, to) = ((array.offset as i64 + place(&strides)) as usize, place(&to) as usize);
                prop_assert_eq!(&source[from..from + width], &dense[to..to + width], "{:?}", index);
            }
            // Copy back, in row-major order.
            let mut back = vec![0; shape.byte_size()];
            HostOrder::RowMajor.copy_from(&shape, &dense, &mut back).unwrap();
            let literal = super::super::literal_from_bytes(&shape, &dense).unwrap();
            prop_assert_eq!(literal.bytes(), &back[..]);
            if let Some(order) = array.dense_order() {
                let same = shape.clone().with_layout(Some(Layout::from_minor_to_major(order)));
                let range = array.dense_bytes(&same).unwrap();
                let mut dense = vec![0; same.byte_size()];
                array.copy_to(&source, &same, &mut dense).unwrap();
                prop_assert_eq!(&source[range.start..range.end.min(source.len())], &dense[..]);
            }
        }
    }

    #[test]
    fn arrays_that_no_memory_holds_are_refused() {
        let huge = StridedShape { strides: Some(&[i64::MAX, 1]), ..StridedShape::dense(ElementType::S8, &[3, 2]) };
        assert!(huge.extent().unwrap_err().message().contains("is too large"));
        let least = StridedShape { strides: Some(&[i64::MIN]), ..StridedShape::dense(ElementType::S8, &[2]) };
        assert!(least.extent().is_err());
        let few = StridedShape { strides: Some(&[1]), ..StridedShape::dense(ElementType::S8, &[3, 2]) };
        assert_eq!(
            few.extent().unwrap_err().message(),
            "the number of strides (1) differs from the number of dimensions (2)"
        );
        assert!(StridedShape::dense(ElementType::F32, &[usize::MAX, 2]).extent().is_err());
        let shape = ArrayShape::new(ElementType::S8, [2]);
        let mut target = [0; 2];
        let early = StridedShape { strides: Some(&[-1]), ..StridedShape::dense(ElementType::S8, &[2]) };
        assert!(early.copy_to(&[1, 2], &shape, &mut target).is_err());
        let backwards = StridedShape { offset: 1, ..early };
        backwards.copy_to(&[1, 2], &shape, &mut target).unwrap();
        assert_eq!(target, [2, 1]);
        let other = StridedShape::dense(ElementType::S8, &[1]);
        assert!(other.copy_to(&[1, 2], &shape, &mut target).unwrap_err().message().contains("does not fit s8[2]"));
    }
}
