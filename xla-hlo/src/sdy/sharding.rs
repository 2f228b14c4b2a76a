//! Shardings of tensors over a mesh.

use super::{Mesh, MeshAxis};

/// Partitioning of a tensor over the devices of a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorSharding {
    /// Mesh that the axes belong to.
    pub mesh: MeshName,
    /// Axes that split each dimension.
    pub dims: Vec<DimSharding>,
    /// Axes along which the tensor is replicated; propagation may not change that.
    pub replicated: Vec<MeshAxis>,
    /// Axes along which devices hold partial values that are not yet reduced.
    pub unreduced: Vec<MeshAxis>,
    /// Reduction of the partial values.
    pub reduction: Reduction,
}

/// Mesh, by its name in the module or inline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MeshName {
    /// Name of one of the [`Meshes`](super::Meshes) of the module.
    Named(String),
    /// Mesh without a name.
    Inline(Mesh),
}

/// Axes that split a dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DimSharding {
    /// Axes, major first.
    pub axes: Vec<MeshAxis>,
    /// Whether propagation may add axes.
    pub is_open: bool,
    /// Priority of the dimension in propagation: lower ones are propagated first. `None` means 0, the highest priority.
    pub priority: Option<u64>,
}

/// Reduction of partial values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Sum.
    #[default]
    Sum,
    /// Maximum.
    Max,
    /// Minimum.
    Min,
}

impl TensorSharding {
    /// Creates a sharding that splits no dimension; all dimensions are closed, or open.
    pub fn unsplit(mesh: MeshName, rank: usize, is_open: bool) -> TensorSharding {
        let dims = vec![DimSharding { is_open, ..DimSharding::default() }; rank];
        TensorSharding { mesh, dims, replicated: Vec::new(), unreduced: Vec::new(), reduction: Reduction::Sum }
    }
}
