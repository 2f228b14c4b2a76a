//! State of one kernel's emission: symbols and their values, nest levels, values already computed.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::values::PointerValue;
use xla_hlo::{CompId, Computation, Error, InstrId, Module, Result};

use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::fused::core::addressing::KnownCoordinates;
use crate::fused::loops::affine::{AffineExpr, Index, Symbol, SymbolId, Symbols};
use crate::fused::mode::{Mode, ThreadMode, VectorMode};
use crate::fused::value::{Guard, GuardId, Source, SymbolValue};
use crate::lanes::Lanes;

/// One level of the nest, with the block that receives its next instruction.
pub(crate) struct Level<'ctx> {
    pub(crate) block: BasicBlock<'ctx>,
}

/// Positions computed inside one of many branches instead of as far out as their symbols allow.
pub(crate) struct LocalPositions<'e, 'ctx> {
    /// Level of the branch.
    pub(crate) level: usize,
    pub(crate) known: HashMap<AffineExpr, Lanes<'e, 'ctx>>,
}

/// Emitter of one kernel's code.
pub(crate) struct FusedEmitter<'e, 'ctx, 'm> {
    pub(crate) emitter: &'e Emitter<'ctx>,
    pub(crate) module: &'m Module,
    pub(crate) computation: CompId,
    pub(crate) sources: HashMap<InstrId, Source<'ctx>>,
    /// Instructions with one element whose values are in registers.
    pub(crate) registers: HashMap<InstrId, Value<'e, 'ctx>>,
    pub(crate) symbols: Symbols,
    pub(crate) symbol_values: Vec<SymbolValue<'e, 'ctx>>,
    /// Symbols that are always 0, keyed by the number and extent of the variable.
    zeros: HashMap<(usize, u64), SymbolId>,
    pub(crate) levels: Vec<Level<'ctx>>,
    pub(crate) guards: Vec<Guard<'e, 'ctx>>,
    pub(crate) guard: GuardId,
    /// Guard of the innermost branch that is being emitted; 0 outside of branches.
    pub(crate) branch: GuardId,
    /// For a guard of several lanes, the scalar guard that holds if any lane's does.
    pub(crate) any_lane: HashMap<GuardId, GuardId>,
    pub(crate) values: HashMap<(InstrId, Index, GuardId), Vec<Value<'e, 'ctx>>>,
    pub(crate) positions: HashMap<AffineExpr, Lanes<'e, 'ctx>>,
    /// Enclosing branches that belong to large branch trees, outermost first.
    pub(crate) local_positions: Vec<LocalPositions<'e, 'ctx>>,
    pub(crate) known_coordinates: KnownCoordinates,
    /// Pointers of the kernel: operands, then results.
    pub(crate) pointers: Vec<PointerValue<'ctx>>,
    /// Outermost level for stores: inside of the bounds check of the work item.
    pub(crate) item_level: usize,
    pub(crate) mode: Mode<'e, 'ctx>,
    /// Whether f32 exponentials may be approximate: relative error 2^-20 for results below 2^16, and 0 instead of
    /// subnormal results. Set if their users have fewer bits.
    pub(crate) brief: bool,
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Starts emission at the builder's position, in the entry block of a function.
    pub(crate) fn new(emitter: &'e Emitter<'ctx>, module: &'m Module, computation: CompId) -> Result<Self> {
        let mut fused = FusedEmitter {
            emitter,
            module,
            computation,
            sources: HashMap::new(),
            registers: HashMap::new(),
            symbols: Symbols::default(),
            symbol_values: Vec::new(),
            zeros: HashMap::new(),
            levels: Vec::new(),
            guards: Vec::new(),
            guard: 0,
            branch: 0,
            any_lane: HashMap::new(),
            values: HashMap::new(),
            positions: HashMap::new(),
            local_positions: Vec::new(),
            known_coordinates: KnownCoordinates::default(),
            pointers: Vec::new(),
            item_level: 0,
            mode: match emitter.target().simt() {
                None => Mode::Vector(VectorMode::default()),
                Some(_) => Mode::Threads(ThreadMode::default()),
            },
            brief: false,
        };
        let block = fused.current_block()?;
        fused.enter_level(block)?;
        Ok(fused)
    }

    pub(crate) fn graph(&self) -> &'m Computation {
        &self.module[self.computation]
    }

    /// Adds a symbol with the value `value`.
    pub(crate) fn define(&mut self, symbol: Symbol, value: SymbolValue<'e, 'ctx>) -> SymbolId {
        self.symbol_values.push(value);
        self.symbols.add(symbol)
    }

    /// Returns the symbol of a plan's variable `number` if another variable of its loop carries the loop counter: it is
    /// always 0.
    ///
    /// A variable has one such symbol per kernel. The index of a value that does not depend on a loop is therefore the
    /// same in all requests: a loop body that is emitted twice reuses the value that was computed the first time.
    pub(crate) fn zero_symbol(&mut self, number: usize, extent: u64) -> SymbolId {
        if let Some(&known) = self.zeros.get(&(number, extent)) {
            return known;
        }
        let value = SymbolValue::Uniform(self.number(0));
        let zero = self.define(Symbol { extent: Some(extent), level: 0 }, value);
        self.zeros.insert((number, extent), zero);
        zero
    }

    pub(crate) fn symbol_value(&self, id: SymbolId) -> SymbolValue<'e, 'ctx> {
        self.symbol_values[id.0 as usize]
    }

    /// Returns the value of a symbol that is uniform across lanes.
    pub(crate) fn uniform_value(&self, id: SymbolId) -> Result<Lanes<'e, 'ctx>> {
        match self.symbol_value(id) {
            SymbolValue::Uniform(value) => Ok(value),
            _ => Err(Error::internal("a loop counter has several lanes")),
        }
    }

    /// Returns the number of lanes of a value at this index.
    pub(crate) fn width(&self, index: &[AffineExpr]) -> u32 {
        let widths = index.iter().flat_map(AffineExpr::terms).map(|(id, _)| match self.symbol_value(id) {
            SymbolValue::Uniform(_) => 1,
            SymbolValue::Lane { width, .. } => width,
            SymbolValue::Varying { lanes, .. } => lanes.width(),
        });
        widths.max().unwrap_or(1)
    }

    /// Returns the mask of the lanes that exist at this index; `None` if all do.
    pub(crate) fn existing_lanes(&self, index: &[AffineExpr]) -> Option<Lanes<'e, 'ctx>> {
        index.iter().flat_map(AffineExpr::terms).find_map(|(id, _)| match self.symbol_value(id) {
            SymbolValue::Uniform(_) => None,
            SymbolValue::Lane { mask, .. } | SymbolValue::Varying { mask, .. } => mask,
        })
    }

    /// Returns the level of a value at this index under the current guard.
    pub(crate) fn level(&self, index: &[AffineExpr]) -> usize {
        let guard = match self.guard {
            0 => 0,
            id => self.guards[id - 1].level,
        };
        index.iter().map(|c| c.level(&self.symbols)).max().unwrap_or(0).max(guard)
    }
}
