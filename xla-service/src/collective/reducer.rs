//! Trait of reducers.

use std::fmt;

use xla_hlo::{ElementType, Result};

/// Reduces corresponding elements of several arrays. Backends implement it with compiled kernels.
pub trait Reducer: fmt::Debug + Send + Sync {
    /// Writes the reduction of `sources`, at least two, to `result`: `((s0 . s1) . s2) . ...` for each element, from
    /// the first source to the last.
    ///
    /// Sources and result have the same number of unpacked elements of type `ty`, without alignment. An element is
    /// converted to the combiner's type, and partial results keep that type until the last step. Threads call it
    /// concurrently for different elements.
    fn reduce(&self, ty: ElementType, sources: &[&[u8]], result: &mut [u8]) -> Result<()>;
}
