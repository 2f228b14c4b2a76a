//! Gather and scatter in protobuf.

use super::{Gather, Scatter};
use crate::proto::messages::{GatherDimensionNumbers, ScatterDimensionNumbers};
use crate::proto::numbers::{fit, index, indices, longs, required};
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::{Opcode, Result};

impl ProtoAttributes for Gather {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let dims = required("gather_dimension_numbers", r.message.gather_dimension_numbers.take())?;
        Ok(Gather {
            offset_dims: indices("offset_dims", &dims.offset_dims)?,
            collapsed_slice_dims: indices("collapsed_slice_dims", &dims.collapsed_slice_dims)?,
            start_index_map: indices("start_index_map", &dims.start_index_map)?,
            operand_batching_dims: indices("operand_batching_dims", &dims.operand_batching_dims)?,
            start_indices_batching_dims: indices("start_indices_batching_dims", &dims.start_indices_batching_dims)?,
            index_vector_dim: index("index_vector_dim", dims.index_vector_dim)?,
            slice_sizes: indices("gather_slice_sizes", &r.message.gather_slice_sizes)?,
            indices_are_sorted: r.message.indices_are_sorted,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.gather_dimension_numbers = Some(Box::new(GatherDimensionNumbers {
            offset_dims: longs("offset_dims", &self.offset_dims)?,
            collapsed_slice_dims: longs("collapsed_slice_dims", &self.collapsed_slice_dims)?,
            start_index_map: longs("start_index_map", &self.start_index_map)?,
            index_vector_dim: fit("index_vector_dim", self.index_vector_dim)?,
            operand_batching_dims: longs("operand_batching_dims", &self.operand_batching_dims)?,
            start_indices_batching_dims: longs("start_indices_batching_dims", &self.start_indices_batching_dims)?,
        }));
        w.message.gather_slice_sizes = longs("slice_sizes", &self.slice_sizes)?;
        w.message.indices_are_sorted = self.indices_are_sorted;
        Ok(())
    }
}

impl ProtoAttributes for Scatter {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [computation] = r.called()?;
        let dims = required("scatter_dimension_numbers", r.message.scatter_dimension_numbers.take())?;
        Ok(Scatter {
            update_window_dims: indices("update_window_dims", &dims.update_window_dims)?,
            inserted_window_dims: indices("inserted_window_dims", &dims.inserted_window_dims)?,
            scatter_dims_to_operand_dims: indices("scatter_dims_to_operand_dims", &dims.scatter_dims_to_operand_dims)?,
            input_batching_dims: indices("input_batching_dims", &dims.input_batching_dims)?,
            scatter_indices_batching_dims: indices(
                "scatter_indices_batching_dims",
                &dims.scatter_indices_batching_dims,
            )?,
            index_vector_dim: index("index_vector_dim", dims.index_vector_dim)?,
            indices_are_sorted: r.message.indices_are_sorted,
            unique_indices: r.message.unique_indices,
            computation,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.scatter_dimension_numbers = Some(Box::new(ScatterDimensionNumbers {
            update_window_dims: longs("update_window_dims", &self.update_window_dims)?,
            inserted_window_dims: longs("inserted_window_dims", &self.inserted_window_dims)?,
            scatter_dims_to_operand_dims: longs("scatter_dims_to_operand_dims", &self.scatter_dims_to_operand_dims)?,
            index_vector_dim: fit("index_vector_dim", self.index_vector_dim)?,
            input_batching_dims: longs("input_batching_dims", &self.input_batching_dims)?,
            scatter_indices_batching_dims: longs("scatter_indices_batching_dims", &self.scatter_indices_batching_dims)?,
        }));
        w.message.indices_are_sorted = self.indices_are_sorted;
        w.message.unique_indices = self.unique_indices;
        w.calls(&[self.computation])
    }
}
