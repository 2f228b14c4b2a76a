//! Context of reading a module: computations by id, texts by number.

use std::collections::HashMap;

use super::metadata::Payloads;
use crate::CompId;

/// Parts of a module that are known while its computations are read.
#[derive(Default)]
pub(super) struct Known {
    /// Computations by id.
    pub computations: HashMap<i64, CompId>,
    /// Texts that metadata names by number.
    pub payloads: Payloads,
}
