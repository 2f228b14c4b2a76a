//! Shardings as in Shardy (`sdy`): meshes, axes, and the mapping of dimensions to axes.

use super::ids::{AttrId, Name};

/// Sharding or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Sharding {
    /// Axes that are manual inside a manual computation.
    ManualAxes(Vec<AttrId>),
    /// Axis of a mesh.
    MeshAxis {
        /// Name of the axis.
        name: Name,
        /// Number of devices along it.
        size: i64,
    },
    /// Mesh: a grid of devices.
    Mesh {
        /// Axes of the mesh, major first.
        axes: Vec<AttrId>,
        /// Ids of the devices in row-major order; empty for 0, 1, 2, ...
        device_ids: Vec<i64>,
    },
    /// Mesh whose axes and device ids are attributes.
    MeshOfAttributes {
        /// List of axes.
        axes: AttrId,
        /// Ids of the devices.
        device_ids: Option<AttrId>,
    },
    /// Part of an axis.
    SubAxis {
        /// Product of the sizes of the preceding parts.
        pre_size: i64,
        /// Size of the part.
        size: i64,
    },
    /// Reference to an axis or a part of it.
    AxisRef {
        /// Name of the axis.
        name: Name,
        /// Referenced part; `None` for the whole axis.
        sub_axis: Option<AttrId>,
    },
    /// Sharding of one dimension of a tensor.
    Dimension {
        /// Axes that the dimension is sharded along, major first.
        axes: Vec<AttrId>,
        /// Whether propagation may not shard it further.
        is_closed: bool,
        /// Priority in propagation: lower values first; 0 if absent.
        priority: Option<u64>,
    },
    /// Sharding of a tensor.
    Tensor {
        /// Mesh, or its symbol.
        mesh: AttrId,
        /// [`Sharding::Dimension`] of each dimension.
        dims: Vec<AttrId>,
        /// Axes along which the tensor must stay replicated in propagation.
        replicated: Vec<AttrId>,
        /// Axes along which the tensor is not reduced yet.
        unreduced: Vec<AttrId>,
        /// Pending reduction over these axes: 0 is sum, 1 maximum, 2 minimum.
        reduction: i64,
    },
    /// Shardings of several values, such as the results of an operation.
    PerValue(Vec<AttrId>),
    /// Factors of one dimension.
    DimensionMapping(Vec<i64>),
    /// Factors of each dimension of a tensor.
    TensorMapping(Vec<AttrId>),
    /// Rule for sharding the factors of an operation's dimensions.
    Rule {
        /// Sizes of the factors.
        factors: Vec<i64>,
        /// [`Sharding::TensorMapping`] of each operand.
        operands: Vec<AttrId>,
        /// [`Sharding::TensorMapping`] of each result.
        results: Vec<AttrId>,
        /// Reduction, need-replication, permutation and blocked-propagation factors, in this order.
        kinds: [Vec<i64>; 4],
        /// Whether the rule was written by a user.
        is_custom: bool,
    },
    /// References to axes.
    AxisRefs(Vec<AttrId>),
    /// Parameters of an all-to-all, which moves axes from one dimension to another.
    AllToAll {
        /// Axes that move.
        axes: Vec<AttrId>,
        /// Source dimension.
        source: i64,
        /// Target dimension.
        target: i64,
    },
    /// List of parameters of the same kind.
    List(Vec<AttrId>),
    /// Replica groups, given as axes of a mesh.
    ReplicaGroups {
        /// Mesh of the groups.
        mesh: AttrId,
        /// Axes of the mesh.
        axes: AttrId,
    },
}

impl Sharding {
    /// Returns the attributes that this one refers to.
    pub(super) fn attributes(&self) -> Vec<AttrId> {
        let named = |name: &Name| match name {
            Name::Attribute(name) => Some(*name),
            Name::String(_) => None,
        };
        match self {
            Sharding::ManualAxes(list)
            | Sharding::PerValue(list)
            | Sharding::TensorMapping(list)
            | Sharding::AxisRefs(list)
            | Sharding::List(list)
            | Sharding::Mesh { axes: list, .. }
            | Sharding::Dimension { axes: list, .. }
            | Sharding::AllToAll { axes: list, .. } => list.clone(),
            Sharding::MeshAxis { name, .. } => named(name).into_iter().collect(),
            Sharding::MeshOfAttributes { axes, device_ids } => std::iter::once(*axes).chain(*device_ids).collect(),
            Sharding::AxisRef { name, sub_axis } => named(name).into_iter().chain(*sub_axis).collect(),
            Sharding::Tensor { mesh, dims, replicated, unreduced, .. } => {
                [&[*mesh], &dims[..], replicated, unreduced].concat()
            }
            Sharding::Rule { operands, results, .. } => [&operands[..], results].concat(),
            Sharding::ReplicaGroups { mesh, axes } => vec![*mesh, *axes],
            Sharding::SubAxis { .. } | Sharding::DimensionMapping(_) => Vec::new(),
        }
    }
}
