//! Collective instructions: warp barriers, shuffles, votes, and matrix loads and multiply-accumulates of the lanes of a
//! warp.

use super::{MemoryOperand, Run, Slot, Slots, Type, WarpGroup};

/// Instruction that lanes of a warp execute together.
#[derive(Clone, Copy, Debug)]
pub enum Collective {
    /// `bar.warp.sync`.
    Sync {
        /// Mask of the participating lanes.
        mask: Slot,
    },
    /// `shfl.sync`.
    Shuffle {
        /// Selection of the source lane.
        mode: ShuffleMode,
        /// Shuffled value.
        d: Slot,
        /// Predicate result: whether the source lane was in range.
        p: Slot,
        /// Source value.
        a: Slot,
        /// Source lane, or distance to it.
        b: Slot,
        /// Clamp and segment mask.
        c: Slot,
        /// Mask of the participating lanes.
        mask: Slot,
    },
    /// `vote.sync`.
    Vote {
        /// Reduction of the vote.
        mode: VoteMode,
        /// Result.
        d: Slot,
        /// Source predicate.
        a: Slot,
        /// Mask of the participating lanes.
        mask: Slot,
    },
    /// `match.any.sync`, `match.all.sync`.
    Match {
        /// Whether this is `match.all`.
        all: bool,
        /// Mask of the lanes with an equal value.
        d: Slot,
        /// Predicate result: whether all lanes have an equal value.
        p: Slot,
        /// Slot of the value to compare.
        a: Slot,
        /// Width of the value in bits.
        bits: u32,
        /// Mask of the participating lanes.
        mask: Slot,
    },
    /// `redux.sync`.
    Reduce {
        /// Function that combines two values.
        run: Run,
        /// Slot for the result.
        d: Slot,
        /// Source value.
        a: Slot,
        /// Mask of the participating lanes.
        mask: Slot,
    },
    /// `ldmatrix.sync`.
    LoadMatrices(MatrixLoad),
    /// `mma.sync`.
    Mma {
        /// Registers of the result.
        fragments: Fragments,
        /// Shape and types.
        d: Slots,
        /// Registers of A.
        a: Slots,
        /// Registers of B.
        b: Slots,
        /// Registers of C.
        c: Slots,
    },
    /// `wgmma`: instruction of the warps of a warp group.
    WarpGroup(WarpGroup),
}

/// `ldmatrix`: loads 8x8 matrices of 16-bit elements from shared memory.
#[derive(Clone, Copy, Debug)]
pub struct MatrixLoad {
    /// Address of the matrix row that the lane provides.
    pub row: MemoryOperand,
    /// Whether the matrices are transposed (`.trans`).
    pub transposed: bool,
    /// Destination register of each matrix.
    pub d: Slots,
}

/// Selection of a shuffle's source lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    /// Lane with a lower index.
    Up,
    /// Lane with a higher index.
    Down,
    /// Lane whose index differs in some bits (`bfly`).
    Butterfly,
    /// Lane with a given index.
    Index,
}

/// Reduction of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteMode {
    /// Whether the predicate holds in all lanes.
    All,
    /// Whether the predicate holds in any lane.
    Any,
    /// Whether the predicate is equal in all lanes.
    Uniform,
    /// Bit mask of the lanes where the predicate holds.
    Ballot,
}

/// Shape and types of an `mma.m16n8kK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragments {
    /// Size of the contracted dimension `K`: 4, 8 or 16.
    pub depth: usize,
    /// Type of A and B: `f16`, `bf16` or `tf32`.
    pub factors: Type,
    /// Type of C and D: `f32` or `f16`.
    pub sums: Type,
}
