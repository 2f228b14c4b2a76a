//! Launches of a top-k, and their sizes.

use xla_hlo::{ElementKind, ElementType, Error};

use crate::fused::tuning::top_k::{FEW, MOST};
use xla_passes::analysis::element_order::Key;

/// Maximum number of elements per row: positions have 32 bits.
pub(super) const LONGEST: usize = i32::MAX as usize;

/// Plan of the kernels of a `topk`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopKPlan {
    pub(super) element_type: ElementType,
    /// Key of an element; the lesser the key, the better the element.
    pub(super) key: Key,
    pub(super) largest: bool,
    pub(super) count: u64,
    pub(super) rows: u64,
    pub(super) length: u64,
    /// Number of elements per chunk, and of chunks per row.
    pub(super) chunk: u64,
    pub(super) chunks: u64,
}

/// Launch of a top-k. The words are addresses of the operand, of the results' values and positions, and of the chunks'
/// items. A launch omits the arrays that it does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopKPhase {
    /// Stores the results of whole rows.
    Rows,
    /// Stores the best elements of each chunk as items.
    Chunks,
    /// Stores the results from the chunks' items.
    Merge,
}

impl TopKPhase {
    /// Returns the number of 64-bit words that the kernel takes.
    pub(super) fn words(self) -> usize {
        match self {
            TopKPhase::Rows => 3,
            TopKPhase::Chunks => 2,
            TopKPhase::Merge => 4,
        }
    }
}

impl TopKPlan {
    /// Maximum `k` that kernels support.
    pub const MOST: usize = MOST as usize;

    /// Returns whether kernels support an element type, which must have a total order.
    pub fn takes(ty: ElementType) -> bool {
        Key::total_order(ty).is_some()
    }

    /// Returns the width in bits of an item, which has an element's key in the high bits and its position in the low
    /// ones.
    pub(super) fn item_bits(&self) -> u32 {
        if self.key.bits <= 32 { 64 } else { 128 }
    }

    /// Returns whether a thread group picks the elements one at a time.
    pub(super) fn picks(&self) -> bool {
        let kind = self.element_type.kind();
        let is_plain = match kind {
            ElementKind::Signed | ElementKind::Unsigned => [8, 16, 32].contains(&self.element_type.bit_width()),
            ElementKind::Float => [ElementType::F16, ElementType::BF16, ElementType::F32].contains(&self.element_type),
            ElementKind::Pred | ElementKind::Complex => false,
        };
        is_plain && self.count <= FEW && self.chunks == 1
    }
}

/// Returns the error for a kernel whose arrays do not fit the launch.
pub(super) fn lacks_addresses() -> Error {
    Error::internal("top-k kernel has unexpected pointers")
}
