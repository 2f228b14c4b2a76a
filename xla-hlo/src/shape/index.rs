//! Index space of an array: strides, linear and multi-dimensional indices, iteration.

/// Returns the strides in elements of an array of `dims` that is stored in `minor_to_major` order.
pub fn strides(dims: &[usize], minor_to_major: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; dims.len()];
    let mut step = 1usize;
    for &d in minor_to_major {
        strides[d] = step;
        step = step.saturating_mul(dims[d]);
    }
    strides
}

/// Returns the row-major position of `index` in an array of `dims`.
pub fn linear_index(dims: &[usize], index: &[usize]) -> usize {
    dims.iter().zip(index).fold(0, |linear, (&size, &i)| linear * size + i)
}

/// Returns the index at row-major position `linear` of an array of `dims`.
pub fn multi_index(dims: &[usize], mut linear: usize) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (i, &size) in index.iter_mut().zip(dims).rev() {
        if size > 0 {
            *i = linear % size;
            linear /= size;
        }
    }
    index
}

/// Iterator over all indices of an array in row-major order. It is a lending iterator: each index is a slice of a
/// reused buffer.
#[derive(Clone, Debug)]
pub struct IndexIter<'a> {
    dims: &'a [usize],
    index: Vec<usize>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Before,
    Inside,
    Done,
}

impl<'a> IndexIter<'a> {
    /// Creates an iterator that starts at the first index.
    pub fn new(dims: &'a [usize]) -> IndexIter<'a> {
        let state = if dims.contains(&0) { State::Done } else { State::Before };
        IndexIter { dims, index: vec![0; dims.len()], state }
    }

    /// Creates an iterator that starts at row-major position `linear`, which must exist.
    pub fn starting_at(dims: &'a [usize], linear: usize) -> IndexIter<'a> {
        IndexIter { index: multi_index(dims, linear), ..IndexIter::new(dims) }
    }

    /// Returns the next index, or `None` after the last.
    pub fn next_index(&mut self) -> Option<&[usize]> {
        match self.state {
            State::Done => return None,
            State::Before => self.state = State::Inside,
            State::Inside => self.advance(),
        }
        (self.state == State::Inside).then_some(&*self.index)
    }

    fn advance(&mut self) {
        for (i, &size) in self.index.iter_mut().zip(self.dims).rev() {
            *i += 1;
            if *i < size {
                return;
            }
            *i = 0;
        }
        self.state = State::Done;
    }
}
