//! Shardings whose axes are resolved against one mesh: the form that propagation and partitioning compute with.

use super::{DimSharding, Mesh, MeshAxis, MeshName, MeshPart, Reduction, TensorSharding};
use crate::{Error, Result};

/// [`TensorSharding`] over a known mesh, with axes as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResolvedSharding {
    /// Axes that split each dimension.
    pub dims: Vec<ResolvedDim>,
    /// Axes along which the tensor is replicated, in mesh order; propagation may not use them.
    pub replicated: Vec<MeshPart>,
    /// Axes along which devices hold partial values that are not yet reduced, in mesh order.
    pub unreduced: Vec<MeshPart>,
    /// Reduction of the partial values.
    pub reduction: Reduction,
}

/// [`DimSharding`] with axes as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResolvedDim {
    /// Axes, major first.
    pub axes: Vec<MeshPart>,
    /// Whether propagation may add axes.
    pub is_open: bool,
    /// Priority of the dimension in propagation.
    pub priority: Option<u64>,
}

impl ResolvedSharding {
    /// Creates a sharding that splits no dimension; all dimensions are closed, or open.
    pub fn unsplit(rank: usize, is_open: bool) -> ResolvedSharding {
        let dims = vec![ResolvedDim { is_open, ..ResolvedDim::default() }; rank];
        ResolvedSharding { dims, ..ResolvedSharding::default() }
    }

    /// Resolves a sharding over `mesh`.
    ///
    /// Fails with `Error::InvalidArgument` if the mesh has no such axis, or if a device would have two positions along
    /// one: an axis part is used twice, or two parts of an axis cannot coexist.
    pub fn new(sharding: &TensorSharding, mesh: &Mesh) -> Result<ResolvedSharding> {
        let parts = |axes: &[MeshAxis]| axes.iter().map(|axis| mesh.part(axis)).collect::<Result<Vec<_>>>();
        let mut resolved = ResolvedSharding { reduction: sharding.reduction, ..ResolvedSharding::default() };
        for dim in &sharding.dims {
            let axes = parts(&dim.axes)?;
            resolved.dims.push(ResolvedDim { axes, is_open: dim.is_open, priority: dim.priority });
        }
        resolved.replicated = parts(&sharding.replicated)?;
        resolved.unreduced = parts(&sharding.unreduced)?;
        let used: Vec<MeshPart> = resolved.parts().collect();
        for (i, &part) in used.iter().enumerate() {
            if let Some(&other) = used[..i].iter().find(|other| part.overlaps(**other) || !part.can_coexist(**other)) {
                return Err(Error::invalid_argument(format!(
                    "{sharding} uses axis {} twice, as {} and as {}",
                    mesh.axes[part.axis].0,
                    mesh.axis(other),
                    mesh.axis(part)
                )));
            }
        }
        Ok(resolved)
    }

    /// Returns the sharding with the names of the axes of `mesh`; inverse of [`ResolvedSharding::new`].
    pub fn named(&self, mesh: &Mesh, name: MeshName) -> TensorSharding {
        let axes = |parts: &[MeshPart]| parts.iter().map(|&part| mesh.axis(part)).collect::<Vec<_>>();
        let dims = self.dims.iter();
        let dims =
            dims.map(|d| DimSharding { axes: axes(&d.axes), is_open: d.is_open, priority: d.priority }).collect();
        TensorSharding {
            mesh: name,
            dims,
            replicated: axes(&self.replicated),
            unreduced: axes(&self.unreduced),
            reduction: self.reduction,
        }
    }

    /// Returns all parts in use, in order: dimensions, replicated, unreduced.
    pub fn parts(&self) -> impl Iterator<Item = MeshPart> + '_ {
        let split = self.dims.iter().flat_map(|dim| &dim.axes);
        split.chain(&self.replicated).chain(&self.unreduced).copied()
    }

    /// Whether no dimension is split and no axis is replicated or unreduced by name.
    pub fn has_no_axes(&self) -> bool {
        self.parts().next().is_none()
    }
}
