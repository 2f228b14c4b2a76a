//! Tuning constants that several strategies share, each with what it weighs.

/// Rows (outermost iterations) below which one row is cut into several work items.
pub(crate) const FEW_ROWS: u64 = 16;
/// Elements of a work item that is a chunk of a row; a multiple of every lane count.
pub(crate) const CHUNK: u64 = 4096;
/// Vector registers of accumulators in a reduction across lanes, so that its steps overlap.
pub(crate) const REDUCE_REGISTERS: u32 = 8;

/// As many lanes, or fewer where a loop is shorter.
pub(crate) fn fitting(mut lanes: u32, extent: u64) -> u32 {
    while lanes > 1 && u64::from(lanes) >= 2 * extent {
        lanes /= 2;
    }
    lanes
}
