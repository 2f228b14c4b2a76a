//! Modes of emission: a processor with vectors, or threads side by side; each with the state of its own techniques.
//!
//! The data stand here, below the emitter that holds them; the code that works with them is in `vector/` and `simt/`.

use std::collections::{HashMap, HashSet};

use inkwell::values::PointerValue;
use xla_hlo::InstrId;

use crate::fused::loops::affine::{AffineExpr, Index, SymbolId};
use crate::fused::loops::range::Range;
use crate::fused::value::Source;
use crate::lanes::Lanes;

/// Machine that a kernel is emitted for, with the state of that emission.
pub(crate) enum Mode<'e, 'ctx> {
    /// One thread with vector registers and a stack.
    Vector(VectorMode<'e, 'ctx>),
    /// Many threads, each with a few elements.
    Threads(ThreadMode<'e, 'ctx>),
}

/// State of emission for a processor with vectors.
#[derive(Default)]
pub(crate) struct VectorMode<'e, 'ctx> {
    pub row_cache: RowCache<'ctx>,
    /// The tile that is being computed, in a kernel that transposes tiles.
    pub tile: Option<Tile<'e, 'ctx>>,
}

/// State of emission for threads.
#[derive(Default)]
pub(crate) struct ThreadMode<'e, 'ctx> {
    /// The threads that reduce together, where some do.
    pub group: Option<ThreadGroup<'e, 'ctx>>,
    /// Instructions that compute an element of what the group goes through, at most.
    pub instructions: u64,
    /// The turns of loops over the group's row, where they are written out.
    pub row: Option<RowTurns<'e, 'ctx>>,
    /// The tile that is being computed, in a kernel that transposes tiles.
    pub tile: Option<SharedTile<'e, 'ctx>>,
}

/// A loop over a row that is being written.
pub(crate) struct RowLoop {
    pub number: usize,
    /// The index that the loop stands at, where it goes through a whole row: what is computed there, and only that, is
    /// in the end computed for all of the row.
    pub at: Option<Index>,
}

/// The loops over rows of one kernel, and the values that they keep.
#[derive(Default)]
pub(crate) struct RowCache<'ctx> {
    /// Instructions that are kept.
    pub kept: HashSet<InstrId>,
    /// The kernel's dimensions.
    pub dims: Vec<usize>,
    /// Number of the dimensions that number rows that are kept; 0 where nothing is.
    pub rows: usize,
    /// The row that the kernel is at.
    pub row: Index,
    /// Loops being written, outermost first; those inside run before those around them.
    pub active: Vec<RowLoop>,
    pub next: usize,
    /// The last loop that wrote each kept row.
    pub written: HashMap<InstrId, (Source<'ctx>, usize)>,
}

/// Key of a tile's buffer for one array: the instruction, its position without the tile's loops, and the step along
/// lanes.
pub(crate) type TileKey = (InstrId, AffineExpr, i64);

/// A tile of two loops whose arrays are transposed into buffers in scratch memory.
pub(crate) struct Tile<'e, 'ctx> {
    /// Elements along one side.
    pub edge: u64,
    /// Level at which buffers are filled: before the loops inside of the tile.
    pub level: usize,
    pub rows: TileSide<'e, 'ctx>,
    pub lanes: TileSide<'e, 'ctx>,
    pub buffers: HashMap<TileKey, PointerValue<'ctx>>,
}

/// One of a tile's two directions.
#[derive(Clone)]
pub(crate) struct TileSide<'e, 'ctx> {
    /// First element of the tile.
    pub start: AffineExpr,
    pub range: Range<'e, 'ctx>,
    /// Symbol of this direction in indices, in the loop that is being written.
    pub symbol: Option<SymbolId>,
}

/// A tile of two loops whose arrays are transposed through shared memory.
pub(crate) struct SharedTile<'e, 'ctx> {
    /// Level at which tiles are filled, by all threads of the block.
    pub level: usize,
    /// The thread's number in its warp, and that of the warp.
    pub lane: Lanes<'e, 'ctx>,
    pub warp: Lanes<'e, 'ctx>,
    /// The rows are those of the loop in which arrays are contiguous.
    pub rows: SharedSide,
    pub lanes: SharedSide,
    pub bytes: u64,
    pub buffers: HashMap<TileKey, PointerValue<'ctx>>,
}

/// As [`TileSide`], for a block of threads.
#[derive(Clone)]
pub(crate) struct SharedSide {
    /// First element of the tile.
    pub start: AffineExpr,
    pub extent: u64,
    /// Symbol of this direction in indices.
    pub symbol: Option<SymbolId>,
}

/// The turns of a thread along its group's row, which are the same in each loop over the row.
#[derive(Clone)]
pub(crate) struct RowTurns<'e, 'ctx> {
    /// Elements of the row.
    pub extent: u64,
    /// Lanes of a turn.
    pub width: u32,
    /// Level of the code that the turns stand in.
    pub level: usize,
    pub symbols: Vec<SymbolId>,
    /// Whether the thread has the last one, where only some have.
    pub last: Option<Lanes<'e, 'ctx>>,
}

/// Threads that reduce together, each some of the elements.
#[derive(Clone, Copy)]
pub(crate) struct ThreadGroup<'e, 'ctx> {
    /// Number of threads: a power of two, of whole warps.
    pub threads: u32,
    /// The number of the thread among them, 64 bits.
    pub member: Lanes<'e, 'ctx>,
    pub kind: GroupKind<'e, 'ctx>,
    /// All threads of the group run the code of this level and of those outside of it.
    pub level: usize,
}

/// Threads of a group.
#[derive(Clone, Copy)]
pub(crate) enum GroupKind<'e, 'ctx> {
    /// Those of a warp.
    Warp,
    /// Those of a block.
    Block,
    /// Of each of as many warps the thread of this number, 64 bits: neighbouring groups read neighbouring elements.
    Column(Lanes<'e, 'ctx>),
}

impl<'e, 'ctx> Mode<'e, 'ctx> {
    /// The state of emission for a processor with vectors, if it is for one.
    pub fn vector(&mut self) -> Option<&mut VectorMode<'e, 'ctx>> {
        match self {
            Mode::Vector(mode) => Some(mode),
            Mode::Threads(_) => None,
        }
    }

    /// The state of emission for threads, if it is for them.
    pub fn threads(&mut self) -> Option<&mut ThreadMode<'e, 'ctx>> {
        match self {
            Mode::Vector(_) => None,
            Mode::Threads(mode) => Some(mode),
        }
    }
}
