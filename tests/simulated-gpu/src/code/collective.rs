//! Collective instructions: barriers, shuffles, votes, matrix loads and multiply-accumulates of the lanes of a warp.

use super::{MemoryOperand, Run, Slot, Slots, Type, WarpGroup};

/// Something that lanes of a warp do together.
#[derive(Clone, Copy, Debug)]
pub enum Collective {
    /// `bar.warp.sync`.
    Sync {
        /// Lanes.
        mask: Slot,
    },
    /// `shfl.sync`.
    Shuffle {
        /// From which lane.
        mode: ShuffleMode,
        /// The value.
        d: Slot,
        /// Whether the lane was within bounds.
        p: Slot,
        /// The value that is given.
        a: Slot,
        /// Lane or distance.
        b: Slot,
        /// Clamp and segments.
        c: Slot,
        /// Lanes.
        mask: Slot,
    },
    /// `vote.sync`.
    Vote {
        /// The mode.
        mode: VoteMode,
        /// The answer.
        d: Slot,
        /// The predicate.
        a: Slot,
        /// Lanes.
        mask: Slot,
    },
    /// `match.any.sync`, `match.all.sync`.
    Match {
        /// Whether all must be the same.
        all: bool,
        /// The lanes that have the same value.
        d: Slot,
        /// Whether all have.
        p: Slot,
        /// The value.
        a: Slot,
        /// Bits of it.
        bits: u32,
        /// Lanes.
        mask: Slot,
    },
    /// `redux.sync`.
    Reduce {
        /// Of two values one.
        run: Run,
        /// The result.
        d: Slot,
        /// The value.
        a: Slot,
        /// Lanes.
        mask: Slot,
    },
    /// `ldmatrix.sync`.
    LoadMatrices(MatrixLoad),
    /// `mma.sync`.
    Mma {
        /// Shape and type.
        fragments: Fragments,
        /// The result's registers.
        d: Slots,
        /// The first factor's registers.
        a: Slots,
        /// The second factor's registers.
        b: Slots,
        /// The addend's registers.
        c: Slots,
    },
    /// `wgmma`: what warps of a warp group do.
    WarpGroup(WarpGroup),
}

/// Matrices of eight rows of 16 bytes in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct MatrixLoad {
    /// The lane's row of a matrix.
    pub row: MemoryOperand,
    /// Whether the elements of 16 bits change rows for columns.
    pub transposed: bool,
    /// A register for each matrix.
    pub d: Slots,
}

/// From which lane a value comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    /// From a lower one.
    Up,
    /// From a higher one.
    Down,
    /// From the one with some bits flipped.
    Butterfly,
    /// From the one of that number.
    Index,
}

/// Question of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteMode {
    /// Whether all hold.
    All,
    /// Whether one holds.
    Any,
    /// Whether all are the same.
    Uniform,
    /// Those that hold, as bits.
    Ballot,
}

/// An mma of 16 rows and 8 columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragments {
    /// The depth: 4, 8 or 16.
    pub depth: usize,
    /// The type of the factors: `f16`, `bf16` or `tf32`.
    pub factors: Type,
    /// The type of sums and results: `f32` or `f16`.
    pub sums: Type,
}
