//! The state of one kernel's emission: symbols and their values, levels, what was computed already.

use std::collections::HashMap;

use inkwell::values::PointerValue;
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Module};

use super::loops::affine::{AffineExpr, Index, Symbol, SymbolId, Symbols};
use super::loops::nest::Level;
use super::loops::plan::Survey;
use super::simt::thread_group::Team;
use super::simt::transpose::SharedTile;
use super::vector::row_cache::RowCache;
use super::vector::transpose::Tile;
use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::lanes::Lanes;

/// The number that a symbol stands for while running, a 64-bit integer.
#[derive(Clone, Copy)]
pub(crate) enum SymbolValue<'e, 'ctx> {
    /// The same in all lanes.
    Uniform(Lanes<'e, 'ctx>),
    /// `base + lane number`; lanes outside of the mask do not exist.
    Lane { base: Lanes<'e, 'ctx>, width: u32, mask: Option<Lanes<'e, 'ctx>> },
    /// Another number in each lane; lanes exist as those of the lane symbol it came from do.
    Varying { lanes: Lanes<'e, 'ctx>, mask: Option<Lanes<'e, 'ctx>> },
}

/// An array in memory that an instruction's value is read from.
#[derive(Clone)]
pub(crate) struct Source<'ctx> {
    pub(crate) base: PointerValue<'ctx>,
    pub(crate) shape: ArrayShape,
}

/// Lanes for which a value is wanted at all; others must not touch memory.
#[derive(Clone, Copy)]
pub(crate) struct Guard<'e, 'ctx> {
    pub(crate) mask: Lanes<'e, 'ctx>,
    /// The level that the mask is computed at.
    pub(crate) level: usize,
}

/// Names a guard in keys; 0 is none.
pub(crate) type GuardId = usize;

/// Writes the code of one kernel.
pub(crate) struct FusedEmitter<'e, 'ctx, 'm> {
    pub(crate) emitter: &'e Emitter<'ctx>,
    pub(crate) module: &'m Module,
    pub(crate) computation: CompId,
    pub(crate) sources: HashMap<InstrId, Source<'ctx>>,
    pub(crate) symbols: Symbols,
    pub(crate) symbol_values: Vec<SymbolValue<'e, 'ctx>>,
    pub(crate) levels: Vec<Level<'ctx>>,
    pub(crate) guards: Vec<Guard<'e, 'ctx>>,
    pub(crate) guard: GuardId,
    /// For a guard of several lanes, the one that holds where it does in any lane.
    pub(crate) any_lane: HashMap<GuardId, GuardId>,
    pub(crate) values: HashMap<(InstrId, Index, GuardId), Vec<Value<'e, 'ctx>>>,
    pub(crate) positions: HashMap<AffineExpr, Lanes<'e, 'ctx>>,
    pub(crate) runtime_divisions: HashMap<(AffineExpr, i64), (AffineExpr, AffineExpr)>,
    pub(crate) box_starts: HashMap<InstrId, Vec<AffineExpr>>,
    /// The kernel's pointers: operands, then results.
    pub(crate) pointers: Vec<PointerValue<'ctx>>,
    pub(crate) cache: RowCache<'ctx>,
    pub(crate) survey: Survey,
    /// Where stores may be at the outermost: inside of the test whether the unit is there.
    pub(crate) unit_level: usize,
    /// The threads that work together, where some do.
    pub(crate) team: Option<Team<'e, 'ctx>>,
    /// The tile that is being worked on, in a kernel that goes in tiles.
    pub(crate) tile: Option<Tile<'e, 'ctx>>,
    /// As [`tile`](Self::tile), in a kernel of threads.
    pub(crate) shared_tile: Option<SharedTile<'e, 'ctx>>,
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Begins at the builder's place, in the entry block of a function.
    pub(crate) fn new(emitter: &'e Emitter<'ctx>, module: &'m Module, computation: CompId) -> xla_hlo::Result<Self> {
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

    pub(crate) fn graph(&self) -> &'m Computation {
        &self.module[self.computation]
    }

    /// Adds a symbol that stands for `value`.
    pub(crate) fn define(&mut self, symbol: Symbol, value: SymbolValue<'e, 'ctx>) -> SymbolId {
        self.symbol_values.push(value);
        self.symbols.add(symbol)
    }

    pub(crate) fn symbol_value(&self, id: SymbolId) -> SymbolValue<'e, 'ctx> {
        self.symbol_values[id.0 as usize]
    }

    /// How many lanes a value at this index has.
    pub(crate) fn width(&self, index: &[AffineExpr]) -> u32 {
        let widths = index.iter().flat_map(AffineExpr::terms).map(|(id, _)| match self.symbol_value(id) {
            SymbolValue::Uniform(_) => 1,
            SymbolValue::Lane { width, .. } => width,
            SymbolValue::Varying { lanes, .. } => lanes.width(),
        });
        widths.max().unwrap_or(1)
    }

    /// The lanes that exist of a value at this index; `None` for all.
    pub(crate) fn existing_lanes(&self, index: &[AffineExpr]) -> Option<Lanes<'e, 'ctx>> {
        index.iter().flat_map(AffineExpr::terms).find_map(|(id, _)| match self.symbol_value(id) {
            SymbolValue::Uniform(_) => None,
            SymbolValue::Lane { mask, .. } | SymbolValue::Varying { mask, .. } => mask,
        })
    }

    /// The level that a value at this index, under the guard in force, belongs to.
    pub(crate) fn level(&self, index: &[AffineExpr]) -> usize {
        let guard = match self.guard {
            0 => 0,
            id => self.guards[id - 1].level,
        };
        index.iter().map(|c| c.level(&self.symbols)).max().unwrap_or(0).max(guard)
    }
}
