//! Strided copies: copy elements between arrays with different dimension orders, gaps and directions.

/// Side length of a tile, in elements: two tiles of the widest elements fit the L1 cache.
const TILE: usize = 16;

/// Plan for copying the elements of an array between two memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StridedCopy {
    /// Bytes of an element.
    width: usize,
    /// Dimensions, slowest in the target first, without those of size 1. Neighbouring dimensions that are contiguous in
    /// both memories are merged.
    dims: Vec<Dim>,
}

/// Dimension of a copy; strides are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dim {
    pub size: usize,
    pub from: i64,
    pub to: i64,
}

impl StridedCopy {
    /// Plans the copy of an array with these dimensions, in any order.
    pub fn new(width: usize, dims: impl IntoIterator<Item = Dim>) -> StridedCopy {
        let mut dims: Vec<Dim> = dims.into_iter().filter(|dim| dim.size != 1).collect();
        dims.sort_by_key(|dim| std::cmp::Reverse((dim.to.unsigned_abs(), dim.from.unsigned_abs())));
        let mut merged: Vec<Dim> = Vec::with_capacity(dims.len());
        for dim in dims {
            let size = dim.size as i64;
            match merged.last_mut() {
                Some(outer) if outer.from == dim.from * size && outer.to == dim.to * size => {
                    *outer = Dim { size: outer.size * dim.size, ..dim };
                }
                _ => merged.push(dim),
            }
        }
        StridedCopy { width, dims: merged }
    }

    /// Copies from byte offset `from` of `source` to byte offset `to` of `target`.
    ///
    /// Panics if an element of the array is outside its memory.
    pub fn run(&self, source: &[u8], from: usize, target: &mut [u8], to: usize) {
        if self.dims.iter().any(|dim| dim.size == 0) {
            return;
        }
        let mut memories = Memories { source, target };
        let (from, to) = (from as i64, to as i64);
        match &self.dims[..] {
            [] => memories.copy(from, to, self.width),
            [outer @ .., run] if run.from == self.width as i64 && run.to == self.width as i64 => {
                let bytes = run.size * self.width;
                for_each(outer, from, to, &mut |from, to| memories.copy(from, to, bytes));
            }
            [outer @ .., inner] => self.elements(outer, *inner, from, to, &mut memories),
        }
    }

    /// Copies element by element, with specialised code for the common element widths.
    fn elements(&self, outer: &[Dim], inner: Dim, from: i64, to: i64, memories: &mut Memories<'_>) {
        match self.width {
            1 => tiles::<1>(outer, inner, from, to, memories),
            2 => tiles::<2>(outer, inner, from, to, memories),
            4 => tiles::<4>(outer, inner, from, to, memories),
            8 => tiles::<8>(outer, inner, from, to, memories),
            16 => tiles::<16>(outer, inner, from, to, memories),
            width => for_each(outer, from, to, &mut |from, to| {
                for_each(&[inner], from, to, &mut |from, to| memories.copy(from, to, width));
            }),
        }
    }
}

/// Copies elements of `W` bytes. If the source's fastest dimension is not the inner one, iterates over both dimensions
/// in tiles, so that both memories are accessed in whole cache lines.
fn tiles<const W: usize>(outer: &[Dim], inner: Dim, from: i64, to: i64, memories: &mut Memories<'_>) {
    let fastest = (0..outer.len()).min_by_key(|&i| outer[i].from.unsigned_abs());
    let Some(fastest) = fastest.filter(|&i| outer[i].from.unsigned_abs() < inner.from.unsigned_abs()) else {
        return for_each(outer, from, to, &mut |from, to| memories.row::<W>(inner, from, to));
    };
    let (other, mut rest) = (outer[fastest], outer.to_vec());
    rest.remove(fastest);
    let starts = |dim: Dim| (0..dim.size).step_by(TILE).map(move |i| (i as i64, TILE.min(dim.size - i)));
    for_each(&rest, from, to, &mut |from, to| {
        for (i, rows) in starts(other) {
            for (j, columns) in starts(inner) {
                let (from, to) = (from + i * other.from + j * inner.from, to + i * other.to + j * inner.to);
                for row in 0..rows as i64 {
                    let part = Dim { size: columns, ..inner };
                    memories.row::<W>(part, from + row * other.from, to + row * other.to);
                }
            }
        }
    });
}

/// Calls `f` with the source and target offsets of each index of the dimensions, the last one varying fastest.
fn for_each(dims: &[Dim], mut from: i64, mut to: i64, f: &mut dyn FnMut(i64, i64)) {
    let mut index = vec![0usize; dims.len()];
    loop {
        f(from, to);
        let mut dim = dims.len();
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            let Dim { size, from: source, to: target } = dims[dim];
            index[dim] += 1;
            (from, to) = (from + source, to + target);
            if index[dim] < size {
                break;
            }
            index[dim] = 0;
            (from, to) = (from - source * size as i64, to - target * size as i64);
        }
    }
}

struct Memories<'a> {
    source: &'a [u8],
    target: &'a mut [u8],
}

impl Memories<'_> {
    fn copy(&mut self, from: i64, to: i64, bytes: usize) {
        let (from, to) = (from as usize, to as usize);
        self.target[to..to + bytes].copy_from_slice(&self.source[from..from + bytes]);
    }

    fn row<const W: usize>(&mut self, dim: Dim, mut from: i64, mut to: i64) {
        for _ in 0..dim.size {
            let (source, target) = (from as usize, to as usize);
            let element: [u8; W] = std::array::from_fn(|i| self.source[source + i]);
            self.target[target..target + W].copy_from_slice(&element);
            (from, to) = (from + dim.from, to + dim.to);
        }
    }
}
