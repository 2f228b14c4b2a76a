//! Shardings of tensors over a mesh.

use super::{Mesh, MeshAxis};

/// Split of a tensor over the devices of a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorSharding {
    /// The mesh.
    pub mesh: MeshName,
    /// For each dimension the axes that split it.
    pub dims: Vec<DimSharding>,
    /// Axes along which the tensor is replicated, and propagation may not change that.
    pub replicated: Vec<MeshAxis>,
    /// Axes along which devices hold parts that are still to be reduced.
    pub unreduced: Vec<MeshAxis>,
    /// The reduction of these parts.
    pub reduction: Reduction,
}

/// A mesh by its name in the module, or the mesh itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MeshName {
    /// A name that [`Meshes`](super::Meshes) knows.
    Named(String),
    /// A mesh without a name.
    Inline(Mesh),
}

/// Axes that split a dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DimSharding {
    /// The axes, major first.
    pub axes: Vec<MeshAxis>,
    /// Whether propagation may add axes.
    pub is_open: bool,
    /// The round of propagation that takes it up; absent is 0, the first.
    pub priority: Option<u64>,
}

/// Reduction of parts that devices hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum.
    #[default]
    Sum,
    /// The maximum.
    Max,
    /// The minimum.
    Min,
}

impl TensorSharding {
    /// A sharding that splits nothing, closed or open in every dimension.
    pub fn unsplit(mesh: MeshName, rank: usize, is_open: bool) -> TensorSharding {
        let dims = vec![DimSharding { is_open, ..DimSharding::default() }; rank];
        TensorSharding { mesh, dims, replicated: Vec::new(), unreduced: Vec::new(), reduction: Reduction::Sum }
    }
}
