//! Collectives, partition ids and replica ids.

mod among;
mod attributes;
mod devices;
mod eval;
mod groups;
mod participants;
mod proto;
mod ragged;
mod shape;
mod sharding;
mod slices;

pub use devices::Meeting;
pub use eval::OnOneDevice;
pub use groups::{IotaGroups, MeshGroups, ReplicaGroups};
pub(in crate::ops) use participants::check_channel;
pub use participants::{GroupMode, Participants};
pub use slices::{SentSlice, slices_of_pair};

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Literal, Result, Shape};

/// An operation that the devices of a group execute together.
///
/// One operation may process several arrays; the result is then a tuple. On one device the result of each operation is
/// exactly defined, see [`Collective::on_one_device`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Reduces elements over the group; all members receive the result.
    AllReduce(AllReduce),
    /// Concatenates the arrays of the group's members.
    AllGather(AllGather),
    /// Reduces elements over the group; each member receives the part of the result that corresponds to its position.
    ReduceScatter {
        /// Groups of devices that participate.
        participants: Participants,
        /// Dimension that is split into parts.
        dimension: usize,
        /// Combiner of two scalars.
        computation: CompId,
    },
    /// Sends part `i` of each member's array to member `i`.
    AllToAll {
        /// Groups of devices that participate.
        participants: Participants,
        /// Dimension that is split and concatenated. `None`: the parts are the operands, and the result is a tuple.
        dimension: Option<usize>,
    },
    /// Sends arrays along pairs of devices; a device that is not a target receives zeros.
    CollectivePermute(CollectivePermute),
    /// Sends the first member's array to all members; a device in no group receives zeros.
    CollectiveBroadcast {
        /// Groups of devices that participate.
        participants: Participants,
        /// Whether the last operand, an `s32[]`, selects the sending member.
        has_dynamic_root: bool,
    },
    /// Reduces elements over the group; one member receives the result, which is undefined on the others.
    CollectiveReduce {
        /// Groups of devices that participate.
        participants: Participants,
        /// Whether the last operand, an `s32[]`, selects the receiving member; otherwise it is the first member.
        has_dynamic_root: bool,
        /// Combiner of two scalars.
        computation: CompId,
    },
    /// Exchanges rows of operand 0, which overwrite rows of operand 1. Operands 2 to 5 contain for each member the
    /// first row to send, the number of rows to send, the first row to write at the receiver, and the number of rows to
    /// receive.
    RaggedAllToAll(Participants),
    /// Waits for a start operation; returns its result.
    Done(CollectiveDone),
    /// Returns the id of this device's replica, `u32[]`.
    ReplicaId,
    /// Returns the id of this device's partition, `u32[]`.
    PartitionId,
}

/// Reduction over a group, synchronous or as the start of an asynchronous one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllReduce {
    /// Groups of devices that participate.
    pub participants: Participants,
    /// Combiner of two scalars.
    pub computation: CompId,
    /// Whether an `all-reduce-done` waits for it. Unlike other starts, it has the shape of the result.
    pub is_start: bool,
}

/// Concatenation of a group's arrays, synchronous or as the start of an asynchronous one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllGather {
    /// Groups of devices that participate.
    pub participants: Participants,
    /// Dimension along which arrays are concatenated.
    pub dimension: usize,
    /// Whether an `all-gather-done` waits for it. If so, the result is `(operands, results)`.
    pub is_start: bool,
}

/// Point-to-point transfer of arrays between devices, synchronous or as the start of an asynchronous one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CollectivePermute {
    /// Channel, not negative. If present, ids are partitions, otherwise replicas.
    pub channel_id: Option<i64>,
    /// Pairs `[source, target]`. A device is the source of at most one pair and the target of at most one, except that
    /// with `slice_sizes` it may have one pair for each slice.
    pub pairs: Vec<Vec<i64>>,
    /// Sizes of the slices sent in place. If not empty, slices of operand 0 at the start indices in operand 2 overwrite
    /// slices of operand 1 at the start indices in operand 3.
    pub slice_sizes: Vec<Vec<i64>>,
    /// Whether a `collective-permute-done` waits for it. If so, the result is `(operands, results, state...)`.
    pub is_start: bool,
}

impl CollectivePermute {
    /// Whether slices overwrite an operand.
    pub fn is_in_place(&self) -> bool {
        !self.slice_sizes.is_empty()
    }
}

/// Kind of a done operation, by the start operation that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveDone {
    /// Done of an `all-reduce-start`.
    AllReduce,
    /// Done of an `all-gather-start`.
    AllGather,
    /// Done of a `collective-permute-start`.
    CollectivePermute,
}

impl ReadAttributes for Collective {
    fn read(opcode: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        attributes::read(opcode, r)
    }
}

impl OpRules for Collective {
    fn opcode(&self) -> Opcode {
        match self {
            Collective::AllReduce(op) if op.is_start => Opcode::AllReduceStart,
            Collective::AllReduce(_) => Opcode::AllReduce,
            Collective::AllGather(op) if op.is_start => Opcode::AllGatherStart,
            Collective::AllGather(_) => Opcode::AllGather,
            Collective::ReduceScatter { .. } => Opcode::ReduceScatter,
            Collective::AllToAll { .. } => Opcode::AllToAll,
            Collective::CollectivePermute(op) if op.is_start => Opcode::CollectivePermuteStart,
            Collective::CollectivePermute(_) => Opcode::CollectivePermute,
            Collective::CollectiveBroadcast { .. } => Opcode::CollectiveBroadcast,
            Collective::CollectiveReduce { .. } => Opcode::CollectiveReduce,
            Collective::RaggedAllToAll(_) => Opcode::RaggedAllToAll,
            Collective::Done(CollectiveDone::AllReduce) => Opcode::AllReduceDone,
            Collective::Done(CollectiveDone::AllGather) => Opcode::AllGatherDone,
            Collective::Done(CollectiveDone::CollectivePermute) => Opcode::CollectivePermuteDone,
            Collective::ReplicaId => Opcode::ReplicaId,
            Collective::PartitionId => Opcode::PartitionId,
        }
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::infer(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        attributes::write(self, w);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::evaluate(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        match self {
            Collective::AllReduce(AllReduce { computation, .. })
            | Collective::ReduceScatter { computation, .. }
            | Collective::CollectiveReduce { computation, .. } => vec![*computation],
            Collective::AllGather(_)
            | Collective::AllToAll { .. }
            | Collective::CollectivePermute(_)
            | Collective::CollectiveBroadcast { .. }
            | Collective::RaggedAllToAll(_)
            | Collective::Done(_)
            | Collective::ReplicaId
            | Collective::PartitionId => Vec::new(),
        }
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        match self {
            Collective::AllReduce(AllReduce { computation, .. })
            | Collective::ReduceScatter { computation, .. }
            | Collective::CollectiveReduce { computation, .. } => f(computation),
            Collective::AllGather(_)
            | Collective::AllToAll { .. }
            | Collective::CollectivePermute(_)
            | Collective::CollectiveBroadcast { .. }
            | Collective::RaggedAllToAll(_)
            | Collective::Done(_)
            | Collective::ReplicaId
            | Collective::PartitionId => {}
        }
    }
}
