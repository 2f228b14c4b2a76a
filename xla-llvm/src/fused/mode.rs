//! Modes of emission: a CPU with vector registers, or a target with many threads; each with the state of its
//! techniques.
//!
//! This module only defines the data, below the emitter that holds them; the code that uses them is in `vector/` and
//! `simt/`.

use std::collections::{HashMap, HashSet};

use inkwell::values::PointerValue;
use xla_hlo::InstrId;

use crate::fused::loops::affine::{AffineExpr, Index, SymbolId};
use crate::fused::loops::range::Range;
use crate::fused::value::Source;
use crate::lanes::Lanes;

/// Target machine of a kernel, with the state of its emission.
pub(crate) enum Mode<'e, 'ctx> {
    /// One CPU thread with vector registers and a stack.
    Vector(VectorMode<'e, 'ctx>),
    /// Many threads that compute a few elements each.
    Threads(ThreadMode<'e, 'ctx>),
}

/// State of emission for a CPU with vectors.
#[derive(Default)]
pub(crate) struct VectorMode<'e, 'ctx> {
    pub row_cache: RowCache<Source<'ctx>>,
    /// Current tile, in a kernel that transposes tiles.
    pub tile: Option<Tile<'e, 'ctx>>,
}

/// State of emission for threads.
#[derive(Default)]
pub(crate) struct ThreadMode<'e, 'ctx> {
    /// Threads that reduce together, if any.
    pub group: Option<ThreadGroup<'e, 'ctx>>,
    /// Upper bound of the instructions per element in loops over the group's row.
    pub instructions: u64,
    /// Iterations of the loops over the group's row, if those are unrolled.
    pub row: Option<RegisterRow<'e, 'ctx>>,
    /// Current tile, in a kernel that transposes tiles.
    pub tile: Option<SharedTile<'e, 'ctx>>,
}

/// Loop over a row that is being emitted.
pub(crate) struct RowLoop {
    pub number: usize,
    /// Index of the current iteration, if the loop covers a whole row. Values computed at this index, and only those,
    /// are in the end computed for the whole row.
    pub at: Option<Index>,
}

/// Row loops of one kernel, and the values kept between them in memory of type `M`.
pub(crate) struct RowCache<M> {
    /// Instructions whose rows are kept.
    pub kept: HashSet<InstrId>,
    /// Sizes of the kernel's dimensions.
    pub dims: Vec<usize>,
    /// Number of leading dimensions that index the kept rows; 0 if none are kept.
    pub rows: usize,
    /// Reductions of rows whose results the elements of their row read, in dependency order.
    pub reductions: Vec<InstrId>,
    /// Index of the row that the kernel is computing.
    pub row: Index,
    /// Loops being emitted, outermost first. Inner ones are hoisted in front of the outer ones, so they run earlier.
    pub active: Vec<RowLoop>,
    pub next: usize,
    /// Memory of each kept row, and the number of the last loop that wrote it.
    pub written: HashMap<InstrId, (M, usize)>,
}

impl<M> Default for RowCache<M> {
    fn default() -> Self {
        RowCache {
            kept: HashSet::new(),
            dims: Vec::new(),
            rows: 0,
            reductions: Vec::new(),
            row: Index::new(),
            active: Vec::new(),
            next: 0,
            written: HashMap::new(),
        }
    }
}

/// Key of a tile's buffer for one array: the instruction, its position without the tile's loop symbols, and the stride
/// along lanes.
pub(crate) type TileKey = (InstrId, AffineExpr, i64);

/// Tile of two loops whose arrays are transposed into buffers in scratch memory.
pub(crate) struct Tile<'e, 'ctx> {
    /// Number of elements along one side.
    pub edge: u64,
    /// Level of the code that fills the buffers: in front of the loops inside of the tile.
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
    /// Symbol of this direction in indices, in the loop that is being emitted.
    pub symbol: Option<SymbolId>,
}

/// Tile of two loops whose arrays are transposed through shared memory.
pub(crate) struct SharedTile<'e, 'ctx> {
    /// Level of the code where all threads of the block fill the tiles.
    pub level: usize,
    /// Number of the thread in its warp.
    pub lane: Lanes<'e, 'ctx>,
    /// Number of the warp in its block.
    pub warp: Lanes<'e, 'ctx>,
    /// Direction along which the arrays are contiguous.
    pub rows: SharedSide,
    pub lanes: SharedSide,
    pub bytes: u64,
    pub buffers: HashMap<TileKey, PointerValue<'ctx>>,
}

/// One of the two directions of a [`SharedTile`], which a block of threads computes.
#[derive(Clone)]
pub(crate) struct SharedSide {
    /// First element of the tile.
    pub start: AffineExpr,
    pub extent: u64,
    /// Symbol of this direction in indices.
    pub symbol: Option<SymbolId>,
}

/// Iterations of a thread along its group's row, shared by all loops over the row.
#[derive(Clone)]
pub(crate) struct RegisterRow<'e, 'ctx> {
    /// Number of elements of the row.
    pub extent: u64,
    /// Number of lanes of an iteration.
    pub width: u32,
    /// Level of the code that contains the unrolled iterations.
    pub level: usize,
    pub symbols: Vec<SymbolId>,
    /// Mask of the threads that take part in the last iteration; `None` if all do.
    pub last: Option<Lanes<'e, 'ctx>>,
}

/// Threads that reduce together, each a part of the elements.
#[derive(Clone, Copy)]
pub(crate) struct ThreadGroup<'e, 'ctx> {
    /// Number of threads: a power of two, whole warps.
    pub threads: u32,
    /// Number of the thread within the group, 64 bits.
    pub member: Lanes<'e, 'ctx>,
    pub kind: GroupKind<'e, 'ctx>,
    /// Innermost level whose code all threads of the group run.
    pub level: usize,
}

/// Composition of a thread group.
#[derive(Clone, Copy)]
pub(crate) enum GroupKind<'e, 'ctx> {
    /// The threads of a warp.
    Warp,
    /// The threads of a block.
    Block,
    /// One thread of each of several warps, all with this lane number (64 bits): neighbouring groups read neighbouring
    /// elements.
    Column(Lanes<'e, 'ctx>),
}

impl<'e, 'ctx> Mode<'e, 'ctx> {
    /// Returns the state of emission for a CPU with vectors, if that is the mode.
    pub fn vector(&mut self) -> Option<&mut VectorMode<'e, 'ctx>> {
        match self {
            Mode::Vector(mode) => Some(mode),
            Mode::Threads(_) => None,
        }
    }

    /// Returns the state of emission for threads, if that is the mode.
    pub fn threads(&mut self) -> Option<&mut ThreadMode<'e, 'ctx>> {
        match self {
            Mode::Vector(_) => None,
            Mode::Threads(mode) => Some(mode),
        }
    }
}
