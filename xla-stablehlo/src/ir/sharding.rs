//! Shardings: meshes, axes, and how dimensions of values lie on them, as Shardy (`sdy`) writes them.

use super::ids::{AttrId, Name};

/// A sharding or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Sharding {
    /// Axes that a manual computation handles itself.
    ManualAxes(Vec<AttrId>),
    /// An axis of a mesh.
    MeshAxis {
        /// Name of the axis.
        name: Name,
        /// Number of devices along it.
        size: i64,
    },
    /// Devices as a grid.
    Mesh {
        /// Its axes, major first.
        axes: Vec<AttrId>,
        /// Ids of the devices in row-major order; empty for 0, 1, 2, ...
        device_ids: Vec<i64>,
    },
    /// A mesh whose axes, and the ids of its devices, are attributes.
    MeshOfAttributes {
        /// A list of axes.
        axes: AttrId,
        /// Ids of the devices.
        device_ids: Option<AttrId>,
    },
    /// A part of an axis.
    SubAxis {
        /// Product of the sizes of the parts before it.
        pre_size: i64,
        /// Its size.
        size: i64,
    },
    /// A reference to an axis or a part of it.
    AxisRef {
        /// Name of the axis.
        name: Name,
        /// The part.
        sub_axis: Option<AttrId>,
    },
    /// Axes that a dimension is sharded along.
    Dimension {
        /// The axes, major first.
        axes: Vec<AttrId>,
        /// Whether propagation may not shard it further.
        is_closed: bool,
        /// When propagation gets to it; absent is 0, first.
        priority: Option<u64>,
    },
    /// Sharding of a tensor.
    Tensor {
        /// The mesh, or its symbol.
        mesh: AttrId,
        /// For each dimension a [`Sharding::Dimension`].
        dims: Vec<AttrId>,
        /// Axes along which the tensor is replicated, and propagation may not change that.
        replicated: Vec<AttrId>,
        /// Axes along which the tensor is still to be reduced.
        unreduced: Vec<AttrId>,
        /// Operation that is still to reduce it: sum 0, maximum 1, minimum 2.
        reduction: i64,
    },
    /// Shardings of several values.
    PerValue(Vec<AttrId>),
    /// Factors of a dimension.
    DimensionMapping(Vec<i64>),
    /// For each dimension of a tensor its factors.
    TensorMapping(Vec<AttrId>),
    /// Rule for sharding the factors of an operation's dimensions.
    Rule {
        /// Sizes of the factors.
        factors: Vec<i64>,
        /// For each operand a [`Sharding::TensorMapping`].
        operands: Vec<AttrId>,
        /// For each result a [`Sharding::TensorMapping`].
        results: Vec<AttrId>,
        /// Factors that are reduced, must be replicated, are permuted, and are blocked.
        kinds: [Vec<i64>; 4],
        /// Whether a user wrote the rule.
        is_custom: bool,
    },
    /// References to axes.
    AxisRefs(Vec<AttrId>),
    /// Parameters of an exchange: axes that move from a dimension to another.
    AllToAll {
        /// The axes.
        axes: Vec<AttrId>,
        /// Dimension that they leave.
        source: i64,
        /// Dimension that they enter.
        target: i64,
    },
    /// Several of a kind.
    List(Vec<AttrId>),
    /// Replica groups as the axes of a mesh.
    ReplicaGroups {
        /// The mesh.
        mesh: AttrId,
        /// The axes.
        axes: AttrId,
    },
}

impl Sharding {
    /// Attributes that this one is made of.
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
