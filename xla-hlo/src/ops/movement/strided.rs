//! Strided copies between arrays: the bit-exact loop shared by all data movement operations.

use crate::{IndexIter, Literal, strides};

/// Strided view of a slice of an array: the element at `index` is element `base + sum of index[d] * strides[d]`.
///
/// Arithmetic wraps: views of slices without elements may overflow, but nothing is read or written through them.
#[derive(Clone, Debug)]
pub(in crate::ops) struct View {
    base: isize,
    strides: Vec<isize>,
}

impl View {
    /// Returns a view of a whole row-major array of `dims`.
    pub(in crate::ops) fn row_major(dims: &[usize]) -> View {
        let minor_to_major: Vec<usize> = (0..dims.len()).rev().collect();
        View { base: 0, strides: strides(dims, &minor_to_major).into_iter().map(|s| s as isize).collect() }
    }

    /// Moves the first element of the view to `start`.
    pub(in crate::ops) fn at(mut self, start: &[usize]) -> View {
        for (d, &i) in start.iter().enumerate() {
            self.advance(d, i);
        }
        self
    }

    /// Moves the first element by `i` elements along dimension `d`.
    pub(in crate::ops) fn advance(&mut self, d: usize, i: usize) {
        self.base = self.base.wrapping_add(self.strides[d].wrapping_mul(i as isize));
    }

    /// Selects every `step`-th element of dimension `d`.
    pub(in crate::ops) fn step(&mut self, d: usize, step: usize) {
        self.strides[d] = self.strides[d].wrapping_mul(step as isize);
    }

    /// Reverses dimension `d`, which has `size` elements.
    pub(in crate::ops) fn reverse(&mut self, d: usize, size: usize) {
        self.advance(d, size.wrapping_sub(1));
        self.strides[d] = self.strides[d].wrapping_neg();
    }

    /// Returns a view whose dimension `i` is dimension `dims[i]` of this view, or a repetition (stride 0) if `dims[i]`
    /// is `None`.
    pub(in crate::ops) fn select(&self, dims: impl IntoIterator<Item = Option<usize>>) -> View {
        let strides = dims.into_iter().map(|d| d.map_or(0, |d| self.strides[d])).collect();
        View { base: self.base, strides }
    }
}

/// One dimension of a slice, with its strides in both arrays.
#[derive(Clone, Copy)]
struct Axis {
    size: usize,
    from: isize,
    to: isize,
}

/// Copies a slice of shape `dims` with elements of `width` bytes from the view `from` of `source` to the view `to` of
/// `target`.
pub(in crate::ops) fn copy_slice(
    dims: &[usize],
    width: usize,
    (source, from): (&[u8], &View),
    (target, to): (&mut [u8], &View),
) {
    if dims.contains(&0) {
        return;
    }
    let mut axes = merged_axes(dims, from, to);
    let inner = axes.pop().unwrap_or(Axis { size: 1, from: 1, to: 1 });
    let outer: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
    let mut rows = IndexIter::new(&outer);
    while let Some(index) = rows.next_index() {
        let place = |base, stride: fn(&Axis) -> isize| {
            axes.iter().zip(index).fold(base, |at: isize, (axis, &i)| at + i as isize * stride(axis))
        };
        let starts = (place(from.base, |a| a.from), place(to.base, |a| a.to));
        match width {
            1 => copy_row::<1>(inner, source, target, starts),
            2 => copy_row::<2>(inner, source, target, starts),
            4 => copy_row::<4>(inner, source, target, starts),
            8 => copy_row::<8>(inner, source, target, starts),
            _ => copy_row::<16>(inner, source, target, starts),
        }
    }
}

/// Returns the dimensions of a slice, except dimensions of size 1. Merges neighbouring dimensions that are contiguous
/// in both arrays.
fn merged_axes(dims: &[usize], from: &View, to: &View) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::with_capacity(dims.len());
    for (d, &size) in dims.iter().enumerate().filter(|&(_, &size)| size != 1) {
        let axis = Axis { size, from: from.strides[d], to: to.strides[d] };
        match axes.last_mut() {
            Some(major) if major.from == axis.from * size as isize && major.to == axis.to * size as isize => {
                *major = Axis { size: major.size * size, ..axis };
            }
            Some(_) | None => axes.push(axis),
        }
    }
    axes
}

/// Copies the elements along one dimension. `WIDTH` is 1, 2, 4, 8 or 16 bytes.
fn copy_row<const WIDTH: usize>(axis: Axis, source: &[u8], target: &mut [u8], starts: (isize, isize)) {
    let (mut read, mut write) = starts;
    if axis.from == 1 && axis.to == 1 {
        let (read, write, bytes) = (read as usize * WIDTH, write as usize * WIDTH, axis.size * WIDTH);
        target[write..write + bytes].copy_from_slice(&source[read..read + bytes]);
        return;
    }
    for _ in 0..axis.size {
        let (r, w) = (read as usize * WIDTH, write as usize * WIDTH);
        target[w..w + WIDTH].copy_from_slice(&source[r..r + WIDTH]);
        read += axis.from;
        write += axis.to;
    }
}

/// Returns the bytes of an array in row-major order after a permutation: dimension `i` is dimension `order[i]`.
pub(in crate::ops) fn permuted(array: &Literal, order: &[usize]) -> Vec<u8> {
    let shape = array.array_shape();
    let dims: Vec<usize> = order.iter().map(|&d| shape.dims()[d]).collect();
    let from = View::row_major(shape.dims()).select(order.iter().copied().map(Some));
    let mut bytes = vec![0; array.bytes().len()];
    let width = shape.element_type().byte_width();
    copy_slice(&dims, width, (array.bytes(), &from), (&mut bytes, &View::row_major(&dims)));
    bytes
}

/// Clamps a start index to `0..=last`. `i128` represents every index type, so that large unsigned values stay large.
pub(in crate::ops) fn clamp_start(start: i128, last: usize) -> usize {
    start.clamp(0, last as i128) as usize
}
