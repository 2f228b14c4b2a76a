//! Rows kept in scratch memory: the first of several loops over a row computes values for all of them.
//!
//! A kernel that reduces rows has a loop for each reduction and one for the results. Both the sum and the result of a
//! softmax need the exponentials. Instead of computing them twice, the first loop stores them to a row of scratch
//! memory, which stays in the L1 cache, and the others load them.

use std::collections::{HashMap, HashSet};

use xla_hlo::ops::{Op, Reduce};
use xla_hlo::{ArrayShape, Computation, InstrId, Module, Result};

use crate::elemental::Value;
use crate::fused::analysis::row_reduction;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::Index;
use crate::fused::mode::{RowCache, RowLoop};
use crate::fused::support;
use crate::fused::tuning::vector::{KEEP_WORK, SCRATCH_BYTES};
use crate::fused::value::Source;
use crate::lanes::Scalar;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Returns the row cache, if the mode has one.
    fn row_cache(&mut self) -> Option<&mut RowCache<Source<'ctx>>> {
        self.mode.vector().map(|mode| &mut mode.row_cache)
    }

    /// Begins the results of a row: sets its index, and computes its reductions first. Their loops run earlier in any
    /// order of emission, but the results load only values that are kept when they are emitted.
    pub(crate) fn begin_row(&mut self, index: &Index) -> Result<()> {
        let Some(cache) = self.row_cache() else { return Ok(()) };
        let reductions = cache.begin_row(index);
        let row = cache.row.clone();
        reductions.into_iter().try_for_each(|id| self.elements(id, &row).map(|_| ()))
    }

    /// Runs `f`, which emits a loop over the row.
    pub(crate) fn row_loop<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if let Some(cache) = self.row_cache() {
            cache.enter_loop();
        }
        let result = f(self);
        self.row_cache().and_then(|cache| cache.active.pop());
        result
    }

    /// Records the index at which the innermost loop, which reduces `operand`, computes its element.
    pub(crate) fn begin_turn(&mut self, operand: InstrId, op: &Reduce, at: &Index) {
        let graph = self.graph();
        if let Some(cache) = self.row_cache() {
            cache.begin_turn(graph, (operand, op), at);
        }
    }

    /// Returns the kept value of an instruction, if a loop that runs earlier has written it.
    pub(crate) fn kept(&mut self, id: InstrId, index: &Index) -> Result<Option<Value<'e, 'ctx>>> {
        match self.unguarded_row_cache().and_then(|cache| cache.kept(id, index)) {
            Some((source, in_row)) => self.load(id, &source, &in_row).map(Some),
            None => Ok(None),
        }
    }

    /// Keeps a value that was just computed, if its instruction is selected and the loop computes the whole row.
    pub(crate) fn keep(&mut self, id: InstrId, index: &Index, value: Value<'e, 'ctx>) -> Result<()> {
        let Some((in_row, writer, known)) = self.unguarded_row_cache().and_then(|cache| cache.place_to_keep(id, index))
        else {
            return Ok(());
        };
        let source = known.map_or_else(|| self.scratch(id), Ok)?;
        self.store(&source, &in_row, value)?;
        if let Some(cache) = self.row_cache() {
            cache.written.insert(id, (source, writer));
        }
        Ok(())
    }

    /// Returns the row cache, if the mode has one and the current code is unguarded.
    fn unguarded_row_cache(&mut self) -> Option<&mut RowCache<Source<'ctx>>> {
        let is_unguarded = self.guard == 0;
        self.row_cache().filter(|_| is_unguarded)
    }

    fn scratch(&mut self, id: InstrId) -> Result<Source<'ctx>> {
        let full = self.graph()[id].shape().expect_array()?;
        let rows = self.row_cache().map_or(0, |cache| cache.rows);
        let shape = ArrayShape::new(full.element_type(), &full.dims()[rows..]);
        self.scratch_memory(shape)
    }

    /// Allocates uninitialized memory that lives for the kernel's whole run.
    pub(crate) fn scratch_memory(&mut self, shape: ArrayShape) -> Result<Source<'ctx>> {
        let base = self.emitter.scratch_array(Scalar::Int(8), shape.byte_size() as u64)?;
        Ok(Source { base, shape })
    }

    /// Selects the values that are kept in a kernel with these dimensions and results.
    pub(crate) fn plan_rows(&mut self, dims: &[usize], results: &[InstrId]) {
        let (module, graph) = (self.module, self.graph());
        let inputs: HashSet<InstrId> = self.sources.keys().copied().collect();
        if let Some(cache) = self.row_cache() {
            cache.plan((module, graph, &inputs), dims, results);
        }
    }
}

impl<M: Clone> RowCache<M> {
    /// Sets the index of the row, given the index of an element in it; returns the reductions that its elements read.
    pub(crate) fn begin_row(&mut self, index: &Index) -> Vec<InstrId> {
        self.row = index.get(..self.rows).unwrap_or(&[]).to_vec();
        self.reductions.clone()
    }

    /// Begins a loop over the row, inside of the active ones.
    pub(crate) fn enter_loop(&mut self) {
        self.active.push(RowLoop { number: self.next, at: None });
        self.next += 1;
    }

    /// Records the index at which the innermost loop, which reduces an operand, computes its element.
    pub(crate) fn begin_turn(&mut self, graph: &Computation, (operand, op): (InstrId, &Reduce), at: &Index) {
        let is_row = row_reduction(graph, &self.dims, operand, op) == Some(self.rows);
        if let Some(innermost) = self.active.last_mut() {
            innermost.at = is_row.then(|| at.clone());
        }
    }

    /// Returns the memory of an instruction's kept row and the place of an index in it, if a loop that runs earlier has
    /// written it.
    pub(crate) fn kept(&self, id: InstrId, index: &Index) -> Option<(M, Index)> {
        let in_row = self.place(index)?;
        let (memory, writer) = self.written.get(&id)?;
        (!self.active.iter().any(|l| l.number == *writer)).then(|| (memory.clone(), in_row))
    }

    /// Returns the place in the row for the value of an instruction at an index, the number of the loop that writes it,
    /// and the memory of the row if it has been written before; `None` if the value is not kept.
    pub(crate) fn place_to_keep(&self, id: InstrId, index: &Index) -> Option<(Index, usize, Option<M>)> {
        let in_row = self.place(index)?;
        let innermost = self.active.last().filter(|l| l.at.as_ref() == Some(index))?;
        let known = self.written.get(&id).map(|(memory, _)| memory.clone());
        self.kept.contains(&id).then_some((in_row, innermost.number, known))
    }

    /// Returns the place of an index in the current row, if it is in that row.
    fn place(&self, index: &Index) -> Option<Index> {
        let (row, place) = index.split_at_checked(self.rows)?;
        (*row == self.row[..]).then(|| place.to_vec())
    }

    /// Selects the values that are kept in a kernel with these dimensions and results.
    pub(crate) fn plan(
        &mut self,
        (module, graph, inputs): (&Module, &Computation, &HashSet<InstrId>),
        dims: &[usize],
        results: &[InstrId],
    ) {
        self.dims = dims.to_vec();
        let is_full = |id: InstrId| graph[id].shape().as_array().is_some_and(|a| a.dims() == dims);
        let reduction = |id: &InstrId| match graph[*id].op() {
            Op::Reduce(r) => row_reduction(graph, dims, graph[*id].operand(0), r),
            _ => None,
        };
        let members = members(graph, inputs, results);
        let order: Vec<InstrId> = graph.post_order().into_iter().filter(|id| members.contains(id)).collect();
        let Some(rows) = order.iter().find_map(reduction) else { return };
        // Each reduction and each full result is a loop; count the loops that compute each full value.
        let reductions = order.iter().filter(|id| reduction(id).is_some()).map(|&id| graph[id].operand(0));
        let starts: Vec<InstrId> = reductions.chain(results.iter().copied().filter(|&r| is_full(r))).collect();
        let mut loops: HashMap<InstrId, usize> = HashMap::new();
        for start in starts {
            let mut seen = HashSet::new();
            let mut stack = vec![start];
            while let Some(id) = stack.pop() {
                if is_full(id) && !inputs.contains(&id) && seen.insert(id) {
                    *loops.entry(id).or_default() += 1;
                    stack.extend(graph[id].operands());
                }
            }
        }
        let elements = dims.iter().product::<usize>() as f64;
        let mut left = SCRATCH_BYTES;
        let mut cost: HashMap<InstrId, f64> = HashMap::new();
        let mut kept = HashSet::new();
        for &id in order.iter().filter(|id| loops.contains_key(id)) {
            let inside: f64 = graph[id].operands().iter().map(|o| cost.get(o).copied().unwrap_or(0.0)).sum();
            let own = inside + support::work(module, graph, id) / elements;
            let row: usize = dims[rows..].iter().product();
            let bytes = row * graph[id].shape().element_type().map_or(0, |t| t.byte_width());
            let keep = loops[&id] > 1 && own >= KEEP_WORK && bytes <= left;
            if keep {
                left -= bytes;
                kept.insert(id);
            }
            cost.insert(id, if keep { 1.0 } else { own });
        }
        if kept.is_empty() {
            return;
        }
        let is_read = |id: &InstrId| reduction(id) == Some(rows) && reads_in_row(graph, *id, dims, rows);
        (self.kept, self.rows) = (kept, rows);
        self.reductions = order.into_iter().filter(is_read).collect();
    }
}

/// Returns the instructions that the kernel computes: everything between its inputs and `results`.
fn members(graph: &Computation, inputs: &HashSet<InstrId>, results: &[InstrId]) -> HashSet<InstrId> {
    let mut members = HashSet::new();
    let mut stack = results.to_vec();
    while let Some(id) = stack.pop() {
        if !inputs.contains(&id) && members.insert(id) {
            stack.extend(graph[id].operands());
        }
    }
    members
}

/// Whether elements of dimensions `dims` read a reduction's result, or a part of it, at the index of their row.
fn reads_in_row(graph: &Computation, reduction: InstrId, dims: &[usize], rows: usize) -> bool {
    graph[reduction].users().iter().any(|&user| match graph[user].op() {
        Op::GetTupleElement(_) => reads_in_row(graph, user, dims, rows),
        Op::Broadcast(broadcast) => {
            broadcast.dimensions.iter().copied().eq(0..rows)
                && graph[user].shape().as_array().is_some_and(|array| array.dims() == dims)
        }
        _ => false,
    })
}
