//! Dimension numbers of gather and scatter, whose slices start at the indices in an array.

use super::{Gather, Scatter};
use crate::ops::checks::{self, ensure};
use crate::{ArrayShape, Literal, Result, Scalar};

/// Dimension numbers of a gather or a scatter. A scatter is represented by the gather that reads the elements that the
/// scatter writes.
pub(super) struct DimNumbers<'a> {
    /// Dimensions of the slices array (result of gather, updates of scatter) that run inside a slice, ascending.
    pub offset_dims: &'a [usize],
    /// Operand dimensions of slice size 1 that the slices array omits.
    pub collapsed_dims: &'a [usize],
    /// Operand dimension of each component of a start index.
    pub start_index_map: &'a [usize],
    pub operand_batching_dims: &'a [usize],
    pub indices_batching_dims: &'a [usize],
    pub index_vector_dim: usize,
    /// Names of the attributes, in the order of the fields.
    names: [&'static str; 5],
}

impl<'a> From<&'a Gather> for DimNumbers<'a> {
    fn from(op: &'a Gather) -> DimNumbers<'a> {
        DimNumbers {
            offset_dims: &op.offset_dims,
            collapsed_dims: &op.collapsed_slice_dims,
            start_index_map: &op.start_index_map,
            operand_batching_dims: &op.operand_batching_dims,
            indices_batching_dims: &op.start_indices_batching_dims,
            index_vector_dim: op.index_vector_dim,
            names: [
                "offset_dims",
                "collapsed_slice_dims",
                "start_index_map",
                "operand_batching_dims",
                "start_indices_batching_dims",
            ],
        }
    }
}

impl<'a> From<&'a Scatter> for DimNumbers<'a> {
    fn from(op: &'a Scatter) -> DimNumbers<'a> {
        DimNumbers {
            offset_dims: &op.update_window_dims,
            collapsed_dims: &op.inserted_window_dims,
            start_index_map: &op.scatter_dims_to_operand_dims,
            operand_batching_dims: &op.input_batching_dims,
            indices_batching_dims: &op.scatter_indices_batching_dims,
            index_vector_dim: op.index_vector_dim,
            names: [
                "update_window_dims",
                "inserted_window_dims",
                "scatter_dims_to_operand_dims",
                "input_batching_dims",
                "scatter_indices_batching_dims",
            ],
        }
    }
}

impl DimNumbers<'_> {
    /// Checks all dimension numbers. Each operand dimension must be batching, collapsed, or inside slices
    /// (`offset_dims`), and each component of a start index must have an operand dimension.
    pub(super) fn check(&self, operand: &ArrayShape, indices: &ArrayShape) -> Result<()> {
        let [offset, collapsed, map, batching, indices_batching] = self.names;
        let rank = operand.rank();
        checks::integer("the array of starts", indices)?;
        ensure!(
            self.index_vector_dim <= indices.rank(),
            "index_vector_dim={} must be a dimension of the starts {indices}, or their rank",
            self.index_vector_dim
        );
        let slice_rank = self.offset_dims.len() + self.batch_dims(indices).len();
        checks::distinct(offset, self.offset_dims, slice_rank)?;
        for (name, dims) in
            [(offset, self.offset_dims), (collapsed, self.collapsed_dims), (batching, self.operand_batching_dims)]
        {
            checks::ascending(name, dims)?;
        }
        checks::distinct(
            &format!("{collapsed} and {batching}"),
            &[self.collapsed_dims, self.operand_batching_dims].concat(),
            rank,
        )?;
        checks::distinct(
            &format!("{map} and {batching}"),
            &[self.start_index_map, self.operand_batching_dims].concat(),
            rank,
        )?;
        let taken = self.offset_dims.len() + self.collapsed_dims.len() + self.operand_batching_dims.len();
        ensure!(
            taken == rank,
            "{offset}, {collapsed} and {batching} must account for each of the {rank} dimensions of the operand {operand}, they name {taken}"
        );
        let components = indices.dims().get(self.index_vector_dim).copied().unwrap_or(1);
        ensure!(
            self.start_index_map.len() == components,
            "{map} {:?} must name an operand dimension for each of the {components} components of a start (starts {indices}, index_vector_dim={})",
            self.start_index_map,
            self.index_vector_dim
        );
        checks::distinct(indices_batching, self.indices_batching_dims, indices.rank())?;
        ensure!(
            !self.indices_batching_dims.contains(&self.index_vector_dim),
            "{indices_batching} {:?} must not name index_vector_dim={}",
            self.indices_batching_dims,
            self.index_vector_dim
        );
        ensure!(
            self.indices_batching_dims.len() == self.operand_batching_dims.len(),
            "{batching} {:?} and {indices_batching} {:?} pair up, so they must have the same length",
            self.operand_batching_dims,
            self.indices_batching_dims
        );
        for (&d, &i) in self.operand_batching_dims.iter().zip(self.indices_batching_dims) {
            ensure!(
                operand.dims()[d] == indices.dims()[i],
                "dimension {d} of the operand {operand} and dimension {i} of the starts {indices} are batched together, so their sizes must be equal"
            );
        }
        Ok(())
    }

    /// Returns the dimensions of the indices array that enumerate start indices, which are all but `index_vector_dim`.
    pub(super) fn batch_dims(&self, indices: &ArrayShape) -> Vec<usize> {
        (0..indices.rank()).filter(|&d| d != self.index_vector_dim).collect()
    }

    /// Returns the operand dimensions that correspond to `offset_dims`, in that order.
    pub(super) fn window_dims(&self, operand_rank: usize) -> Vec<usize> {
        let mut runs = vec![true; operand_rank];
        self.collapsed_dims.iter().chain(self.operand_batching_dims).for_each(|&d| runs[d] = false);
        (0..operand_rank).filter(|&d| runs[d]).collect()
    }

    /// Returns the role of each dimension of the slices array.
    pub(super) fn slice_dims(&self, operand_rank: usize, indices: &ArrayShape) -> Vec<SliceDim> {
        let batch = self.batch_dims(indices);
        let mut dims: Vec<Option<SliceDim>> = vec![None; self.offset_dims.len() + batch.len()];
        for (&at, operand_dim) in self.offset_dims.iter().zip(self.window_dims(operand_rank)) {
            dims[at] = Some(SliceDim::Window(operand_dim));
        }
        let mut batch = batch.into_iter().map(SliceDim::Batch);
        dims.into_iter().filter_map(|dim| dim.or_else(|| batch.next())).collect()
    }

    /// Returns the start index at position `batch` along [`DimNumbers::batch_dims`], neither clamped nor checked.
    pub(super) fn start(&self, operand_rank: usize, indices: &Literal, batch: &[usize]) -> Vec<i128> {
        let dims = indices.array_shape().dims();
        let mut index = batch.to_vec();
        if self.index_vector_dim < dims.len() {
            index.insert(self.index_vector_dim, 0);
        }
        let mut start = vec![0; operand_rank];
        for (component, &d) in self.start_index_map.iter().enumerate() {
            if let Some(i) = index.get_mut(self.index_vector_dim) {
                *i = component;
            }
            let value: Scalar = indices.get(crate::linear_index(dims, &index));
            start[d] = value.as_i128().unwrap_or(0);
        }
        for (&d, &i) in self.operand_batching_dims.iter().zip(self.indices_batching_dims) {
            start[d] = index[i] as i128;
        }
        start
    }
}

/// Role of a dimension of the slices array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SliceDim {
    /// Runs inside a slice, along this operand dimension.
    Window(usize),
    /// Enumerates start indices, along this dimension of the indices array.
    Batch(usize),
}
