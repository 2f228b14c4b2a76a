//! Reductions over sliding windows.

mod attributes;
mod eval;
mod geometry;
mod lines;
mod positions;
mod proto;
mod shape;
mod sharding;

pub use geometry::{Cumulative, Window, WindowDim};

pub(in crate::ops) use proto::{read_window, write_window};

use super::combiner::is_order_free;
use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Literal, Module, Result, Shape};

/// `reduce-window`: a reduction over each position of a window, of N arrays with N initial values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceWindow {
    /// Window with one entry for each dimension; no entries mean size 1 in all dimensions.
    pub window: Window,
    /// Combiner of accumulators and elements, as in [`Reduce`](super::Reduce).
    pub computation: CompId,
}

impl ReduceWindow {
    /// Returns the dimensions along which windows have several elements, in the order of a separable reduction. `None`
    /// if the combiner requires the elements of a window in order.
    ///
    /// `base` are the sizes of the array, `output` the sizes of the result.
    pub fn dimension_order(&self, module: &Module, base: &[usize], output: &[usize]) -> Option<Vec<usize>> {
        let dims = self.window.dims_for(base.len()).ok()?;
        if !is_order_free(module.get(self.computation)?) {
            return None;
        }
        // Shrinking dimensions first, so that no intermediate array is larger than both the first and the last.
        let windows = (0..base.len()).filter(|&d| !dims[d].is_unit());
        let (shrinking, growing): (Vec<usize>, Vec<usize>) = windows.partition(|&d| output[d] <= base[d]);
        Some([shrinking, growing].concat())
    }
}

impl ReadAttributes for ReduceWindow {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(ReduceWindow { window: r.optional("window")?.unwrap_or_default(), computation: r.required("to_apply")? })
    }
}

impl OpRules for ReduceWindow {
    fn opcode(&self) -> Opcode {
        Opcode::ReduceWindow
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::reduce_window(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        if !self.window.dims.is_empty() {
            w.attribute("window", &self.window);
        }
        w.attribute("to_apply", &self.computation);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::reduce_window(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.computation]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.computation);
    }
}

/// `select-and-scatter`: chooses an element of each window of operand 0 by `select`. Combines the values of operand 1
/// at the chosen positions by `scatter`, starting from operand 2 everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectAndScatter {
    /// Window with one entry for each dimension; no entries mean size 1 in all dimensions.
    pub window: Window,
    /// Computation that decides whether the current choice is kept.
    pub select: CompId,
    /// Combiner of values that are scattered to the same position.
    pub scatter: CompId,
}

impl ReadAttributes for SelectAndScatter {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(SelectAndScatter {
            window: r.optional("window")?.unwrap_or_default(),
            select: r.required("select")?,
            scatter: r.required("scatter")?,
        })
    }
}

impl OpRules for SelectAndScatter {
    fn opcode(&self) -> Opcode {
        Opcode::SelectAndScatter
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::select_and_scatter(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        if !self.window.dims.is_empty() {
            w.attribute("window", &self.window);
        }
        w.attribute("select", &self.select);
        w.attribute("scatter", &self.scatter);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::select_and_scatter(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.select, self.scatter]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.select);
        f(&mut self.scatter);
    }
}
