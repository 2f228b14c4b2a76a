//! Collectives, partition and replica ids.

mod attributes;
mod devices;
mod eval;
mod groups;
mod participants;
mod proto;
mod shape;
#[cfg(test)]
mod tests;

pub use eval::{OnOneDevice, SentSlice};
pub use groups::{IotaGroups, MeshGroups, ReplicaGroups};
pub(in crate::ops) use participants::check_channel;
pub use participants::{GroupMode, Participants};

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Literal, Result, Shape};

/// An operation that the devices of a group do together.
///
/// Several arrays may go through one operation; the result is then a tuple. On one device each has an exact meaning,
/// which [`Collective::on_one_device`] tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Elements reduced over the group: all its members get the result.
    AllReduce(AllReduce),
    /// Arrays of the group's members one after the other.
    AllGather(AllGather),
    /// The part of an all-reduce that belongs to the member's place in the group.
    ReduceScatter {
        /// Participants.
        participants: Participants,
        /// Dimension that is cut into parts.
        dimension: usize,
        /// Reduces two scalars.
        computation: CompId,
    },
    /// Part `i` of each member's array goes to member `i`.
    AllToAll {
        /// Participants.
        participants: Participants,
        /// Dimension that is cut and put together; absent: the parts are the operands, and the result is a tuple.
        dimension: Option<usize>,
    },
    /// Arrays sent along pairs of devices; who is no target gets zeros.
    CollectivePermute(CollectivePermute),
    /// The first member's array, for all members; who is in no group gets zeros.
    CollectiveBroadcast {
        /// Participants.
        participants: Participants,
        /// Whether the last operand, an `s32[]`, says which member sends.
        has_dynamic_root: bool,
    },
    /// Elements reduced over the group; one member gets the result, for the others it is undefined.
    CollectiveReduce {
        /// Participants.
        participants: Participants,
        /// Whether the last operand, an `s32[]`, says which member gets the result; else the first.
        has_dynamic_root: bool,
        /// Reduces two scalars.
        computation: CompId,
    },
    /// Rows of operand 0 exchanged, written over operand 1. Operands 2 to 5 say for each member where rows begin here,
    /// how many are sent, where they go there, and how many are received.
    RaggedAllToAll(Participants),
    /// Waits for a start operation; returns its result.
    Done(CollectiveDone),
    /// The number of this device's replica, `u32[]`.
    ReplicaId,
    /// The number of this device's partition, `u32[]`.
    PartitionId,
}

/// A reduction over a group, synchronous or its start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllReduce {
    /// Participants.
    pub participants: Participants,
    /// Reduces two scalars.
    pub computation: CompId,
    /// Whether an `all-reduce-done` waits for it. The shape is that of the result all the same.
    pub is_start: bool,
}

/// Concatenation of a group's arrays, synchronous or its start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllGather {
    /// Participants.
    pub participants: Participants,
    /// Along which dimension.
    pub dimension: usize,
    /// Whether an `all-gather-done` waits for it. It returns `(operands, results)` then.
    pub is_start: bool,
}

/// Arrays sent from device to device, synchronously or by a start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CollectivePermute {
    /// Positive; present when devices are partitions.
    pub channel_id: Option<i64>,
    /// `[source, target]` each; a device is the source of one pair at most, and the target of one.
    pub pairs: Vec<Vec<i64>>,
    /// Sizes of slices that are sent; not empty: slices of operand 0 at the places in operand 2 are written over
    /// operand 1 at the places in operand 3.
    pub slice_sizes: Vec<Vec<i64>>,
    /// Whether a `collective-permute-done` waits for it. It returns `(operands, results, state...)` then.
    pub is_start: bool,
}

impl CollectivePermute {
    /// Whether slices are written over an operand.
    pub fn is_in_place(&self) -> bool {
        !self.slice_sizes.is_empty()
    }
}

/// Done of an asynchronous collective, by the start that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveDone {
    /// An `all-reduce-start`.
    AllReduce,
    /// An `all-gather-start`.
    AllGather,
    /// A `collective-permute-start`.
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
