//! Fused emission: any element of any fusible operation at an index, so that a fusion is one loop nest without buffers.
//!
//! ```text
//! kernel     a fusion (or one operation) as a function: which loops, what is stored   kernel.rs
//!   rows     one team of threads for each row: reductions, softmax, layer norm             rows.rs, team.rs, team_reduce.rs
//!   product  one block of threads for each tile of a dot or a convolution             product.rs, product_tiles.rs
//!   thin     a dot of few rows or columns, at the pace of memory                      product_thin.rs
//!   split    products of few results and long sums, in two launches                   product_split.rs
//!   threads  one thread of many for each few neighbouring elements                    threads.rs
//!   shared_tiles  a block of threads for each tile of two loops, in shared memory     shared_tiles.rs
//!   tiles    blocks of two loops, transposed on the way in                            tiles.rs
//!   strands  work along some dimensions, independent along others            strands.rs, scan.rs, columns.rs
//!   scans    running totals by blocks of threads                                      team_scan.rs
//!   scatter  one thread for each update, or for each place                       scatter_threads.rs, scatter_order.rs
//!   sort     runs in shared memory, merged two by two                                 sort.rs
//!   top_k    the few best of rows                                                     top_k.rs
//!   nest     levels with open blocks, loops, carried values                           nest.rs
//!   element  the value of an instruction at an index, by family                  element.rs, movement.rs, window.rs
//!     index  where an element lies: sums of symbols, no LLVM                          index.rs
//!       elemental, math: what one operation does to lanes                             ../elemental, ../math
//! ```
//!
//! Code is placed at the outermost level that its index allows; values are remembered by instruction and index, so that
//! what two consumers need is computed once.

mod address;
mod columns;
mod convolution;
mod element;
mod frame;
mod guard;
pub mod index;
mod indexing;
mod kernel;
mod movement;
mod nest;
mod plan;
mod product;
mod product_split;
mod product_thin;
mod product_tiles;
mod product_warps;
mod reduce;
mod row_cache;
mod rows;
mod scalar_call;
mod scan;
mod scatter;
mod scatter_means;
mod scatter_order;
mod scatter_plan;
mod scatter_threads;
mod select_scatter;
mod shared_tiles;
mod sort;
mod source;
mod strands;
mod support;
mod team;
mod team_reduce;
mod team_scan;
mod threads;
mod tiles;
mod top_k;
mod window;

use std::collections::HashMap;

use inkwell::values::PointerValue;
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Module};

pub use kernel::{Kernel, emit_kernel};
pub use product_split::{ProductPhase, SplitProduct};
pub use scalar_call::is_scalar_computation;
pub use scatter_plan::ScatterPlan;
pub use scatter_threads::{ScatterPhase, ThreadedScatter};
pub use sort::{SortPhase, SortPlan};
pub use source::{KernelSource, KernelTable};
pub use support::{is_fusible, is_kernel_root};
pub use team_scan::{ScanPhase, ScanPlan};
pub use top_k::TopKPlan;

use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::lanes::Lanes;
use index::{Coord, Index, Symbol, SymbolId, Symbols};
use nest::Level;
use plan::Survey;
use row_cache::RowCache;
use shared_tiles::SharedTile;
use team::Team;
use tiles::Tile;

/// The number that a symbol stands for while running, a 64-bit integer.
#[derive(Clone, Copy)]
enum SymbolValue<'e, 'ctx> {
    /// The same in all lanes.
    Uniform(Lanes<'e, 'ctx>),
    /// `base + lane number`; lanes outside of the mask do not exist.
    Lane { base: Lanes<'e, 'ctx>, width: u32, mask: Option<Lanes<'e, 'ctx>> },
    /// Another number in each lane; lanes exist as those of the lane symbol it came from do.
    Varying { lanes: Lanes<'e, 'ctx>, mask: Option<Lanes<'e, 'ctx>> },
}

/// An array in memory that an instruction's value is read from.
#[derive(Clone)]
struct Source<'ctx> {
    base: PointerValue<'ctx>,
    shape: ArrayShape,
}

/// Lanes for which a value is wanted at all; others must not touch memory.
#[derive(Clone, Copy)]
struct Guard<'e, 'ctx> {
    mask: Lanes<'e, 'ctx>,
    /// The level that the mask is computed at.
    level: usize,
}

/// Names a guard in keys; 0 is none.
type GuardId = usize;

/// Writes the code of one kernel.
pub(crate) struct FusedEmitter<'e, 'ctx, 'm> {
    emitter: &'e Emitter<'ctx>,
    module: &'m Module,
    computation: CompId,
    sources: HashMap<InstrId, Source<'ctx>>,
    symbols: Symbols,
    symbol_values: Vec<SymbolValue<'e, 'ctx>>,
    levels: Vec<Level<'ctx>>,
    guards: Vec<Guard<'e, 'ctx>>,
    guard: GuardId,
    /// For a guard of several lanes, the one that holds where it does in any lane.
    any_lane: HashMap<GuardId, GuardId>,
    values: HashMap<(InstrId, Index, GuardId), Vec<Value<'e, 'ctx>>>,
    positions: HashMap<Coord, Lanes<'e, 'ctx>>,
    runtime_divisions: HashMap<(Coord, i64), (Coord, Coord)>,
    box_starts: HashMap<InstrId, Vec<Coord>>,
    /// The kernel's pointers: operands, then results.
    pointers: Vec<PointerValue<'ctx>>,
    cache: RowCache<'ctx>,
    survey: Survey,
    /// Where stores may be at the outermost: inside of the test whether the unit is there.
    unit_level: usize,
    /// The threads that work together, where some do.
    team: Option<Team<'e, 'ctx>>,
    /// The tile that is being worked on, in a kernel that goes in tiles.
    tile: Option<Tile<'e, 'ctx>>,
    /// As [`tile`](Self::tile), in a kernel of threads.
    shared_tile: Option<SharedTile<'e, 'ctx>>,
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Begins at the builder's place, in the entry block of a function.
    fn new(emitter: &'e Emitter<'ctx>, module: &'m Module, computation: CompId) -> xla_hlo::Result<Self> {
        let mut fused = FusedEmitter {
            emitter,
            module,
            computation,
            sources: HashMap::new(),
            symbols: Symbols::default(),
            symbol_values: Vec::new(),
            levels: Vec::new(),
            guards: Vec::new(),
            guard: 0,
            any_lane: HashMap::new(),
            values: HashMap::new(),
            positions: HashMap::new(),
            runtime_divisions: HashMap::new(),
            box_starts: HashMap::new(),
            pointers: Vec::new(),
            cache: RowCache::default(),
            survey: Survey::default(),
            unit_level: 0,
            team: None,
            tile: None,
            shared_tile: None,
        };
        let block = fused.current_block()?;
        fused.enter_level(block)?;
        Ok(fused)
    }

    fn graph(&self) -> &'m Computation {
        &self.module[self.computation]
    }

    /// Adds a symbol that stands for `value`.
    fn define(&mut self, symbol: Symbol, value: SymbolValue<'e, 'ctx>) -> SymbolId {
        self.symbol_values.push(value);
        self.symbols.add(symbol)
    }

    fn symbol_value(&self, id: SymbolId) -> SymbolValue<'e, 'ctx> {
        self.symbol_values[id.0 as usize]
    }

    /// How many lanes a value at this index has.
    fn width(&self, index: &[Coord]) -> u32 {
        let widths = index.iter().flat_map(Coord::terms).map(|(id, _)| match self.symbol_value(id) {
            SymbolValue::Uniform(_) => 1,
            SymbolValue::Lane { width, .. } => width,
            SymbolValue::Varying { lanes, .. } => lanes.width(),
        });
        widths.max().unwrap_or(1)
    }

    /// The lanes that exist of a value at this index; `None` for all.
    fn existing_lanes(&self, index: &[Coord]) -> Option<Lanes<'e, 'ctx>> {
        index.iter().flat_map(Coord::terms).find_map(|(id, _)| match self.symbol_value(id) {
            SymbolValue::Uniform(_) => None,
            SymbolValue::Lane { mask, .. } | SymbolValue::Varying { mask, .. } => mask,
        })
    }

    /// The level that a value at this index, under the guard in force, belongs to.
    fn level(&self, index: &[Coord]) -> usize {
        let guard = match self.guard {
            0 => 0,
            id => self.guards[id - 1].level,
        };
        index.iter().map(|c| c.level(&self.symbols)).max().unwrap_or(0).max(guard)
    }
}
