//! Context for reading a module: computations by id, payloads by index.

use std::collections::HashMap;

use super::metadata::Payloads;
use crate::CompId;

/// Parts of a module that are available while its computations are read.
#[derive(Default)]
pub(super) struct Known {
    /// Computations that have been read, by id.
    pub computations: HashMap<i64, CompId>,
    /// Texts that metadata refers to by index.
    pub payloads: Payloads,
}
