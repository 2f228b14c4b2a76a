//! Gather and scatter: slices at dynamic indices.

mod dim_numbers;
mod eval;
mod proto;
mod shape;
mod sharding;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Literal, Result, Shape};

/// `gather`: slices of operand 0 at the start indices in operand 1. Start indices are clamped so that slices fit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gather {
    /// Result dimensions that run inside a slice, ascending.
    pub offset_dims: Vec<usize>,
    /// Operand dimensions of slice size 1 that the result omits.
    pub collapsed_slice_dims: Vec<usize>,
    /// Operand dimension of component `i` of a start index.
    pub start_index_map: Vec<usize>,
    /// Operand dimensions indexed by the batch position.
    pub operand_batching_dims: Vec<usize>,
    /// Dimensions of the indices array, paired by position with `operand_batching_dims`.
    pub start_indices_batching_dims: Vec<usize>,
    /// Dimension of the indices array that holds the components. If it equals the rank of the array, there is an
    /// implicit trailing dimension of size 1.
    pub index_vector_dim: usize,
    /// Size of a slice along each operand dimension.
    pub slice_sizes: Vec<usize>,
    /// Promise of the program that start indices are in ascending order.
    pub indices_are_sorted: bool,
}

impl ReadAttributes for Gather {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Gather {
            offset_dims: r.required("offset_dims")?,
            collapsed_slice_dims: r.required("collapsed_slice_dims")?,
            start_index_map: r.required("start_index_map")?,
            operand_batching_dims: r.optional("operand_batching_dims")?.unwrap_or_default(),
            start_indices_batching_dims: r.optional("start_indices_batching_dims")?.unwrap_or_default(),
            index_vector_dim: r.required("index_vector_dim")?,
            slice_sizes: r.required("slice_sizes")?,
            indices_are_sorted: r.optional("indices_are_sorted")?.unwrap_or(false),
        })
    }
}

impl OpRules for Gather {
    fn opcode(&self) -> Opcode {
        Opcode::Gather
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::gather(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("offset_dims", &self.offset_dims);
        w.attribute("collapsed_slice_dims", &self.collapsed_slice_dims);
        w.attribute("start_index_map", &self.start_index_map);
        if !self.operand_batching_dims.is_empty() {
            w.attribute("operand_batching_dims", &self.operand_batching_dims);
        }
        if !self.start_indices_batching_dims.is_empty() {
            w.attribute("start_indices_batching_dims", &self.start_indices_batching_dims);
        }
        w.attribute("index_vector_dim", &self.index_vector_dim);
        w.attribute("slice_sizes", &self.slice_sizes);
        if self.indices_are_sorted {
            w.attribute("indices_are_sorted", &true);
        }
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::gather(self, ev, operands, shape)
    }
}

/// `scatter`: combines windows of N updates into N inputs at the start indices in the indices array. Operands are the
/// inputs, the indices, and the updates. A window that is not fully in bounds is skipped as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scatter {
    /// Dimensions of the updates that run inside a window, ascending.
    pub update_window_dims: Vec<usize>,
    /// Input dimensions of window size 1 that the updates omit.
    pub inserted_window_dims: Vec<usize>,
    /// Input dimension of component `i` of a start index.
    pub scatter_dims_to_operand_dims: Vec<usize>,
    /// Input dimensions indexed by the batch position.
    pub input_batching_dims: Vec<usize>,
    /// Dimensions of the indices array, paired by position with `input_batching_dims`.
    pub scatter_indices_batching_dims: Vec<usize>,
    /// Dimension of the indices array that holds the components. If it equals the rank of the array, there is an
    /// implicit trailing dimension of size 1.
    pub index_vector_dim: usize,
    /// Promise of the program that start indices are in ascending order.
    pub indices_are_sorted: bool,
    /// Promise of the program that start indices are distinct.
    pub unique_indices: bool,
    /// Combiner from N current values and N updates to N results.
    pub computation: CompId,
}

impl ReadAttributes for Scatter {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Scatter {
            update_window_dims: r.required("update_window_dims")?,
            inserted_window_dims: r.required("inserted_window_dims")?,
            scatter_dims_to_operand_dims: r.required("scatter_dims_to_operand_dims")?,
            input_batching_dims: r.optional("input_batching_dims")?.unwrap_or_default(),
            scatter_indices_batching_dims: r.optional("scatter_indices_batching_dims")?.unwrap_or_default(),
            index_vector_dim: r.required("index_vector_dim")?,
            indices_are_sorted: r.optional("indices_are_sorted")?.unwrap_or(false),
            unique_indices: r.optional("unique_indices")?.unwrap_or(false),
            computation: r.required("to_apply")?,
        })
    }
}

impl OpRules for Scatter {
    fn opcode(&self) -> Opcode {
        Opcode::Scatter
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::scatter(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("update_window_dims", &self.update_window_dims);
        w.attribute("inserted_window_dims", &self.inserted_window_dims);
        w.attribute("scatter_dims_to_operand_dims", &self.scatter_dims_to_operand_dims);
        if !self.input_batching_dims.is_empty() {
            w.attribute("input_batching_dims", &self.input_batching_dims);
        }
        if !self.scatter_indices_batching_dims.is_empty() {
            w.attribute("scatter_indices_batching_dims", &self.scatter_indices_batching_dims);
        }
        w.attribute("index_vector_dim", &self.index_vector_dim);
        if self.indices_are_sorted {
            w.attribute("indices_are_sorted", &true);
        }
        if self.unique_indices {
            w.attribute("unique_indices", &true);
        }
        w.attribute("to_apply", &self.computation);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::scatter(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.computation]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.computation);
    }
}
