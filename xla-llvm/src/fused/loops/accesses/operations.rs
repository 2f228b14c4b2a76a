//! Accesses of operations with loops or branches.

use xla_hlo::ops::{Convolution, Dot, Reduce, ReduceWindow};
use xla_hlo::{InstrId, Result};

use crate::fused::core::addressing::Addressing;
use crate::fused::core::concatenate::{Part, is_by_branch, parts_at};
use crate::fused::core::convolution::{ConvolutionLoops, input_index, kernel_index};
use crate::fused::core::reduce::{DotLoops, ReduceLoops, operand_indices, reduce_lanes};
use crate::fused::core::window::{Fit, WindowPlace, window_fit};
use crate::fused::loops::accesses::Accesses;
use crate::fused::loops::accesses::guards::Guards;
use crate::fused::loops::affine::{AffineExpr, Index, Symbol};
use crate::fused::tuning::threads;

impl<'m> Accesses<'_, 'm> {
    /// Returns the coordinates of a nest of loops, the last one with steps of `width` lanes.
    fn loops(&mut self, extents: &[u64], width: u32) -> Vec<AffineExpr> {
        let mut coordinates = Vec::with_capacity(extents.len());
        for (number, &extent) in extents.iter().enumerate() {
            let width = if number + 1 == extents.len() { width } else { 1 };
            coordinates.push(match (extent, width) {
                (1, 1) => AffineExpr::default(),
                _ => AffineExpr::symbol(self.define(Symbol { extent: Some(extent), level: 1 }, width)),
            });
        }
        coordinates
    }

    pub(super) fn concatenated(&mut self, id: InstrId, dimension: usize, index: &Index) -> Result<()> {
        let parts = parts_at(self, id, dimension, index)?;
        let most_selected = if self.target.simt().is_none() { 1 } else { threads::MOST_SELECTED };
        self.among(&parts, (dimension, most_selected), index)
    }

    /// Visits the elements of a range of neighbouring operands of a concatenation.
    fn among(&mut self, parts: &[Part], place: (usize, usize), index: &Index) -> Result<()> {
        let (dimension, most_selected) = place;
        let coordinate = &index[dimension];
        let lanes = self.width(std::slice::from_ref(coordinate));
        if is_by_branch(parts, lanes, most_selected) {
            self.number_of(coordinate);
            let (lower, upper) = parts.split_at(parts.len() / 2);
            let mut sides = [lower, upper].into_iter();
            return sides.try_for_each(|side| self.under(Guards::BRANCH, |s| s.among(side, place, index)));
        }
        for part in parts {
            let mut condition = None;
            let at = part.inside(self, (dimension, parts.len() == 1), index, &mut condition)?;
            self.guarded(part.operand, &at, condition)?;
        }
        Ok(())
    }

    pub(super) fn contracted(&mut self, id: InstrId, dot: &Dot, index: &Index) -> Result<()> {
        let operands = self.graph[id].operands();
        let width = self.width(index);
        let loops = DotLoops::new(self.graph, id, dot, (self.target, width))?;
        if loops.extents.contains(&0) {
            return Ok(());
        }
        let coordinates = self.loops(&loops.extents, loops.lanes.unwrap_or(1));
        let (left, right) = operand_indices(&dot.dims, loops.ranks, index, &coordinates);
        self.element(operands[0], &left)?;
        self.element(operands[1], &right)
    }

    pub(super) fn convolved(&mut self, id: InstrId, op: &Convolution, index: &Index) -> Result<()> {
        let graph = self.graph;
        let (input, kernel) = (graph[id].operand(0), graph[id].operand(1));
        for operand in [input, kernel] {
            if graph[operand].shape().expect_array()?.dims().contains(&0) {
                return Ok(());
            }
        }
        let loops = ConvolutionLoops::new(self, id, op, index)?;
        let coordinates = self.loops(&loops.extents, 1);
        let tap = loops.tap(op, &coordinates)?;
        let mut condition = None;
        let at = input_index(self, id, op, &tap, &mut condition)?;
        self.guarded(input, &at, condition)?;
        self.element(kernel, &kernel_index(graph, id, op, &tap)?)
    }

    pub(super) fn reduced(&mut self, id: InstrId, op: &Reduce, index: &Index) -> Result<()> {
        let loops = ReduceLoops::new(self.graph, id, op)?;
        self.initial_values(id)?;
        if loops.extents.contains(&0) {
            return Ok(());
        }
        if loops.lane_combiner(self.module, self.width(index)).is_none() {
            let coordinates = self.loops(&loops.extents, 1);
            let at = loops.input_index(index, &coordinates);
            return loops.inputs.iter().try_for_each(|&input| self.element(input, &at));
        }
        let lanes = reduce_lanes(self.target, loops.element_type, loops.last());
        let coordinates = self.loops(&loops.extents, lanes);
        let at = loops.input_index(index, &coordinates);
        if let Some(rows) = &mut self.rows {
            rows.enter_loop();
            rows.begin_turn(self.graph, (loops.inputs[0], op), &at);
        }
        let visited = self.element(loops.inputs[0], &at);
        self.rows.as_mut().and_then(|rows| rows.active.pop());
        visited
    }

    pub(super) fn window_reduced(&mut self, id: InstrId, op: &ReduceWindow, index: &Index) -> Result<()> {
        let operands = self.graph[id].operands();
        let inputs = &operands[..operands.len() / 2];
        let base = self.graph[inputs[0]].shape().expect_array()?.dims();
        let (dims, output) = (op.window.dims_for(base.len())?, op.window.output_dims(base)?);
        self.initial_values(id)?;
        if base.contains(&0) {
            return Ok(());
        }
        let place = WindowPlace { dims: &dims, base, output: &output, index };
        let (mut at, mut condition) = (Index::new(), None);
        for (d, w) in dims.iter().enumerate() {
            let begin = place.begin(d);
            let fit = window_fit(self, w, &begin, base[d]);
            match fit {
                Fit::Always => {}
                Fit::InRange => self.number_of(&begin),
                Fit::Perhaps { first, end } if first >= end && !fit.is_one(w) => return Ok(()),
                Fit::Perhaps { .. } => {}
            }
            let step = match fit.is_one(w) {
                true => AffineExpr::default(),
                false => AffineExpr::symbol(self.define(Symbol { extent: Some(w.size as u64), level: 1 }, 1)),
            };
            at.push(place.coordinate(self, (d, fit), &begin, step, &mut condition)?);
        }
        inputs.iter().try_for_each(|&input| self.guarded(input, &at, condition))
    }

    fn initial_values(&mut self, id: InstrId) -> Result<()> {
        let operands = self.graph[id].operands();
        operands[operands.len() / 2..].iter().try_for_each(|&init| self.element(init, &Vec::new()))
    }
}
