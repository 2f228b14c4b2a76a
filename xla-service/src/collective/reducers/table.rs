//! Tables of an operation on elements of one byte.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use xla_hlo::ops::ElementFunction;
use xla_hlo::{ElementType, Scalar};

/// Number of pairs of bytes, and of elements after which a table pays off.
const PAIRS: usize = 1 << 16;

/// Results of an operation for all pairs of bytes, computed once many elements were combined.
#[derive(Debug, Default)]
pub(super) struct Table {
    combined: AtomicUsize,
    results: OnceLock<Vec<u8>>,
}

impl Table {
    /// Returns the results, `256 * accumulator + element` being the index of each; `None` while few elements were
    /// combined. `count` is the number of elements that the caller combines.
    pub fn results(&self, ty: ElementType, count: usize, function: &ElementFunction) -> Option<&[u8]> {
        if self.results.get().is_none() && self.combined.fetch_add(count, Ordering::Relaxed) < PAIRS {
            return None;
        }
        let result = |pair: usize| {
            let [accumulator, element] = [pair / 256, pair % 256].map(|byte| Scalar::read(ty, &[byte as u8]));
            let mut result = [0];
            function.apply(&[accumulator, element]).write(ty, &mut result);
            result[0]
        };
        Some(self.results.get_or_init(|| (0..PAIRS).map(result).collect()))
    }
}
