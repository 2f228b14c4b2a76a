//! Reductions over sliding windows.

mod attributes;
mod eval;
mod geometry;
mod lines;
mod positions;
mod proto;
mod shape;
#[cfg(test)]
mod tests;

pub use geometry::{Cumulative, Window, WindowDim};

pub(in crate::ops) use proto::{read_window, write_window};

use super::combiner::is_order_free;
use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Literal, Module, Result, Shape};

/// A reduction over each position of a window, of N arrays with N initial values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceWindow {
    /// One entry for each dimension; empty means all of size 1.
    pub window: Window,
    /// The combiner, as in [`Reduce`](super::Reduce).
    pub computation: CompId,
}

impl ReduceWindow {
    /// The dimensions in which windows have several elements, in the order in which they are reduced one after the
    /// other; `None` where the combiner wants the elements of a window in their own order.
    ///
    /// `base` are the sizes of the array, `output` those of the result.
    pub fn dimension_order(&self, module: &Module, base: &[usize], output: &[usize]) -> Option<Vec<usize>> {
        let dims = self.window.dims_for(base.len()).ok()?;
        if !is_order_free(module.get(self.computation)?) {
            return None;
        }
        // Dimensions that shrink go first, so that no array on the way is larger than both the first and the last.
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

/// Chooses an element of each window of operand 0 by `select` and combines operand 1's values there by `scatter`,
/// starting from operand 2 everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectAndScatter {
    /// One entry for each dimension; empty means all of size 1.
    pub window: Window,
    /// Whether the current choice stays.
    pub select: CompId,
    /// Combines values at one place.
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
