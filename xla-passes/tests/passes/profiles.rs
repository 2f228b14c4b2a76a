//! Target profiles that several test binaries share.

use xla_hlo::ElementType::{BF16, F16, F32};
use xla_passes::{AttentionProfile, HeadSizes};

/// Returns a profile of attention kernels with heads of 16 to 64 elements, from 16 queries and 64 keys on, or up to 8
/// queries.
pub fn attention() -> AttentionProfile {
    let sizes = HeadSizes { step: 16, most: 64 };
    AttentionProfile {
        types: [F16, BF16, F32].into(),
        full_precision: false,
        any_head_order: false,
        head_sizes: [(2, sizes), (4, sizes)].into(),
        sum_head_sizes: [(2, sizes), (4, sizes)].into(),
        least_queries: 16,
        least_keys: 64,
        few_queries: 8,
        tile: 64,
        few_keys: 1024,
        excess_precision: true,
    }
}
