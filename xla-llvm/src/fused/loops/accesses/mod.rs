//! Analysis of a kernel's accesses: the coordinates that its elements need, in terms of the loops' symbols.
//!
//! [`Accesses`] visits the elements that emission would compute, with the same index arithmetic ([`Addressing`]), and
//! computes nothing.

mod addressing;
mod guards;
mod operations;

use std::collections::HashSet;

use xla_hlo::ops::{Family, Op};
use xla_hlo::{ArrayShape, Computation, Error, InstrId, Module, Result};

use crate::fused::core::address::strides_of;
use crate::fused::core::addressing::{Addressing, KnownCoordinates};
use crate::fused::core::element::is_single;
use crate::fused::core::movement::{inside_pad, inside_update, moved_from};
use crate::fused::loops::accesses::guards::Guards;
use crate::fused::loops::affine::{AffineExpr, Index, Symbol, SymbolId, Symbols, position};
use crate::fused::loops::plan::Survey;
use crate::fused::mode::RowCache;
use crate::fused::source::KernelSource;
use crate::target::Target;

/// Accesses of a kernel, for one element of each result.
pub(crate) struct Accesses<'a, 'm> {
    module: &'m Module,
    graph: &'m Computation,
    /// Instructions whose values are in memory.
    inputs: HashSet<InstrId>,
    target: &'a Target,
    pub symbols: Symbols,
    /// Number of lanes of each symbol.
    widths: Vec<u32>,
    known: KnownCoordinates,
    /// Elements that were visited, and whether under a guard.
    visited: HashSet<(InstrId, Index, bool)>,
    guards: Guards,
    /// Rows that a kernel for vectors keeps in scratch memory.
    pub rows: Option<RowCache<()>>,
    pub survey: Survey,
}

impl<'a, 'm> Accesses<'a, 'm> {
    /// Returns the analysis of a kernel with these dimensions and results, before anything is visited.
    pub fn new(kernel: &KernelSource<'m>, target: &'a Target, dims: &[usize], results: &[InstrId]) -> Accesses<'a, 'm> {
        let (module, graph) = (kernel.module, &kernel.module[kernel.computation]);
        let inputs: HashSet<InstrId> = kernel.inputs.iter().copied().collect();
        let rows = target.simt().is_none().then(|| {
            let mut rows = RowCache::default();
            rows.plan((module, graph, &inputs), dims, results);
            rows
        });
        Accesses {
            module,
            graph,
            inputs,
            target,
            symbols: Symbols::default(),
            widths: Vec::new(),
            known: KnownCoordinates::default(),
            visited: HashSet::new(),
            guards: Guards::default(),
            rows,
            survey: Survey::default(),
        }
    }

    /// Adds a symbol whose values are uniform, or one number for each of several lanes.
    pub fn define(&mut self, symbol: Symbol, width: u32) -> SymbolId {
        self.widths.push(width);
        self.symbols.add(symbol)
    }

    /// Adds a symbol for a number that is computed from a coordinate.
    fn computed(&mut self, extent: Option<u64>, from: &[AffineExpr]) -> AffineExpr {
        let level = from.iter().map(|c| c.level(&self.symbols)).max().unwrap_or(0);
        let width = self.width(from);
        AffineExpr::symbol(self.define(Symbol { extent, level }, width))
    }

    /// Records that a coordinate is converted to a number.
    fn number_of(&mut self, expr: &AffineExpr) {
        self.survey.uses.insert(expr.clone());
    }

    /// Runs `f` under other guards.
    fn under<R>(&mut self, guards: Guards, f: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.guards, guards);
        let result = f(self);
        self.guards = outer;
        result
    }

    /// Visits the element that all results of a row read: sets the index of the row, and visits its reductions.
    pub fn begin_row(&mut self, index: &Index) -> Result<()> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let reductions = rows.begin_row(index);
        let row = rows.row.clone();
        reductions.into_iter().try_for_each(|id| self.element(id, &row))
    }

    /// Visits a result's element that is written to memory.
    pub fn stored(&mut self, shape: &ArrayShape, index: &[AffineExpr]) {
        self.number_of(&position(index, &strides_of(shape)));
    }

    fn loaded(&mut self, shape: &ArrayShape, index: &Index) {
        let at = position(index, &strides_of(shape));
        if self.guards.is_empty() && at.level(&self.symbols) == 0 {
            self.survey.reads.insert(at.clone());
        }
        self.number_of(&at);
    }

    /// Visits the element of an instruction at an index.
    pub fn element(&mut self, id: InstrId, index: &Index) -> Result<()> {
        if self.guards.is_masked && is_single(self.graph, id) {
            // All users in a branch share the only element, whatever their conditions.
            let rank = self.graph[id].shape().expect_array()?.rank();
            return self.under(self.guards.without_mask(), |s| s.element(id, &vec![AffineExpr::default(); rank]));
        }
        if !self.visited.insert((id, index.clone(), self.guards.is_empty())) || self.kept(id, index)? {
            return Ok(());
        }
        self.compute(id, index)?;
        self.keep(id, index)
    }

    /// Visits the load of a value that an earlier loop over the row keeps, if one does.
    fn kept(&mut self, id: InstrId, index: &Index) -> Result<bool> {
        let rows = self.rows.as_ref().filter(|_| self.guards.is_empty());
        let Some((rows, ((), in_row))) = rows.and_then(|rows| Some((rows.rows, rows.kept(id, index)?))) else {
            return Ok(false);
        };
        self.loaded(&row_shape(self.graph, id, rows)?, &in_row);
        Ok(true)
    }

    /// Visits the store of a value that is kept for later loops over the row.
    fn keep(&mut self, id: InstrId, index: &Index) -> Result<()> {
        let Some(rows) = self.rows.as_mut().filter(|_| self.guards.is_empty()) else { return Ok(()) };
        let Some((in_row, writer, _)) = rows.place_to_keep(id, index) else { return Ok(()) };
        rows.written.insert(id, ((), writer));
        let shape = row_shape(self.graph, id, rows.rows)?;
        self.stored(&shape, &in_row);
        Ok(())
    }

    /// Visits the elements that an element is computed from.
    fn compute(&mut self, id: InstrId, index: &Index) -> Result<()> {
        let graph = self.graph;
        if self.inputs.contains(&id) {
            self.loaded(graph[id].shape().expect_array()?, index);
            return Ok(());
        }
        if let Some((operand, at)) = moved_from(self, id, index)? {
            return self.element(operand, &at);
        }
        let instruction = &graph[id];
        let operands = instruction.operands();
        match instruction.op() {
            Op::Constant(c) => {
                if c.literal.uniform().is_none() {
                    self.loaded(c.literal.array_shape(), index);
                }
                Ok(())
            }
            Op::GetTupleElement(_) => self.element(operands[0], index),
            Op::Iota(iota) => {
                self.number_of(&index[iota.dimension]);
                Ok(())
            }
            op if op.opcode().family() == Family::Elementwise => operands.iter().try_for_each(|&operand| {
                let is_scalar = graph[operand].shape().expect_array()?.is_scalar();
                if is_scalar { self.element(operand, &Vec::new()) } else { self.element(operand, index) }
            }),
            Op::Map(_) => operands.iter().try_for_each(|&operand| self.element(operand, index)),
            Op::Pad(pad) => {
                self.element(operands[1], &Vec::new())?;
                if graph[operands[0]].shape().expect_array()?.dims().contains(&0) {
                    return Ok(());
                }
                let mut condition = None;
                let inside = inside_pad(self, id, pad, index, &mut condition)?;
                self.guarded(operands[0], &inside, condition)
            }
            Op::DynamicUpdateSlice(_) => {
                self.element(operands[0], index)?;
                if graph[operands[1]].shape().expect_array()?.dims().contains(&0) {
                    return Ok(());
                }
                let mut condition = None;
                let inside = inside_update(self, id, index, &mut condition)?;
                self.guarded(operands[1], &inside, condition)
            }
            Op::Concatenate(c) => self.concatenated(id, c.dimension, index),
            Op::Dot(dot) => self.contracted(id, dot, index),
            Op::Convolution(convolution) => self.convolved(id, convolution, index),
            Op::Reduce(reduce) => self.reduced(id, reduce, index),
            Op::ReduceWindow(reduce) => self.window_reduced(id, reduce, index),
            other => Err(Error::internal(format!(
                "accesses of %{} ({}) cannot be analysed element by element",
                instruction.name(),
                other.opcode()
            ))),
        }
    }

    fn guarded(&mut self, id: InstrId, index: &Index, condition: Option<()>) -> Result<()> {
        self.under(self.guards.and(condition.is_some()), |s| s.element(id, index))
    }
}

/// Returns the shape of an instruction's kept row.
fn row_shape(graph: &Computation, id: InstrId, rows: usize) -> Result<ArrayShape> {
    let full = graph[id].shape().expect_array()?;
    Ok(ArrayShape::new(full.element_type(), &full.dims()[rows..]))
}
