//! Storage of an array: bytes of all elements, or one element for all of them (a splat).

use std::sync::{Arc, OnceLock};

use crate::out_of_memory::fallible;
use crate::{Error, Result};

/// Width in bytes of the widest element, a `c128`.
const MAX_WIDTH: usize = 16;

/// Bytes of an array in row-major order. Clones share them.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    /// Bytes of every element.
    Dense(Arc<Vec<u8>>),
    /// One element that is repeated.
    Splat(Arc<Splat>),
}

#[derive(Debug)]
pub(super) struct Splat {
    element: [u8; MAX_WIDTH],
    width: usize,
    /// Number of bytes of the array.
    len: usize,
    /// Bytes of all elements, once a caller has requested them.
    dense: OnceLock<Vec<u8>>,
}

impl Storage {
    /// Creates `count` copies of an element with those bytes. Stored densely if `count` is 0 or 1.
    pub(super) fn splat(element: &[u8], count: usize) -> Storage {
        let width = element.len();
        if count < 2 || width > MAX_WIDTH {
            return Storage::Dense(Arc::new(element.repeat(count)));
        }
        let mut bytes = [0; MAX_WIDTH];
        bytes[..width].copy_from_slice(element);
        Storage::Splat(Arc::new(Splat { element: bytes, width, len: width * count, dense: OnceLock::new() }))
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Storage::Dense(bytes) => bytes.len(),
            Storage::Splat(splat) => splat.len,
        }
    }

    /// Returns the bytes of the single stored element of a splat.
    pub(super) fn repeated(&self) -> Option<&[u8]> {
        match self {
            Storage::Dense(_) => None,
            Storage::Splat(splat) => Some(splat.element()),
        }
    }

    /// Returns the bytes of the element that all elements equal, for dense arrays too. For an array whose first two
    /// elements differ, the comparison stops there.
    pub(super) fn uniform(&self, width: usize) -> Option<&[u8]> {
        match self {
            Storage::Dense(bytes) => {
                let first = bytes.get(..width)?;
                (bytes[width..] == bytes[..bytes.len() - width]).then_some(first)
            }
            Storage::Splat(splat) => Some(splat.element()),
        }
    }

    /// Returns the bytes of element `i`; elements are `width` bytes wide.
    pub(super) fn element(&self, i: usize, width: usize) -> &[u8] {
        match self {
            Storage::Dense(bytes) => &bytes[i * width..(i + 1) * width],
            Storage::Splat(splat) => {
                debug_assert!(i < splat.len / splat.width, "element {i} is out of bounds");
                splat.element()
            }
        }
    }

    /// Returns all bytes. The first call expands a splat and caches the result.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Dense(bytes) => bytes,
            Storage::Splat(splat) => splat.dense.get_or_init(|| splat.element().repeat(splat.len / splat.width)),
        }
    }

    /// Expands a splat, so that the next [`Storage::bytes`] only returns a reference. Fails if there is too little
    /// memory.
    pub(super) fn densify(&self) -> Result<()> {
        let Storage::Splat(splat) = self else { return Ok(()) };
        if splat.dense.get().is_none() {
            let mut bytes = reserved(splat.len)?;
            bytes.resize(splat.len, 0);
            fill(&mut bytes, splat.element());
            // Another thread may have been faster; its bytes are the same.
            let _ = splat.dense.set(bytes);
        }
        Ok(())
    }

    /// Returns all bytes for writing. The storage is dense afterwards; shared bytes are copied first.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        if let Storage::Splat(splat) = self {
            let written = Arc::get_mut(splat).and_then(|splat| splat.dense.take());
            let bytes = written.unwrap_or_else(|| splat.element().repeat(splat.len / splat.width));
            *self = Storage::Dense(Arc::new(bytes));
        }
        match self {
            Storage::Dense(bytes) => Arc::make_mut(bytes).as_mut_slice(),
            Storage::Splat(_) => &mut [],
        }
    }

    /// Copies all bytes; `target` must have the same length.
    pub(super) fn copy_to(&self, target: &mut [u8]) {
        match self {
            Storage::Dense(bytes) => target.copy_from_slice(bytes),
            Storage::Splat(splat) => {
                assert_eq!(target.len(), splat.len, "the target and the array differ in size");
                fill(target, splat.element());
            }
        }
    }

    /// Whether both hold the same bytes, in elements of that width.
    pub(super) fn equals(&self, other: &Storage, width: usize) -> bool {
        if self.len() != other.len() {
            return false;
        }
        match (self, other) {
            (Storage::Dense(a), Storage::Dense(b)) => a == b,
            _ => self.uniform(width).is_some() && self.uniform(width) == other.uniform(width),
        }
    }
}

impl Splat {
    fn element(&self) -> &[u8] {
        &self.element[..self.width]
    }
}

/// Allocates an empty vector with capacity for `bytes` bytes; fails if they do not fit in memory.
pub(super) fn reserved(bytes: usize) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    fallible(|| data.try_reserve_exact(bytes))
        .map_err(|e| Error::resource_exhausted(format!("no memory for a literal of {bytes} bytes")).with_source(e))?;
    Ok(data)
}

/// Fills `target` with copies of an element, a whole number of them; each step doubles the filled part.
fn fill(target: &mut [u8], element: &[u8]) {
    let Some(first) = target.get_mut(..element.len()) else { return };
    first.copy_from_slice(element);
    let mut done = element.len();
    while done < target.len() {
        let more = done.min(target.len() - done);
        let (from, to) = target.split_at_mut(done);
        to[..more].copy_from_slice(&from[..more]);
        done += more;
    }
}
