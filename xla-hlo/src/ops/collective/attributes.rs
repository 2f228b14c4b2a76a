//! Text form of collectives.

use super::participants::{Rules, write_channel};
use super::{AllGather, AllReduce, Collective, CollectiveDone, CollectivePermute, Participants};
use crate::ops::Opcode;
use crate::text::{AttributeReader, AttributeValue, AttributeWriter};
use crate::{Error, Result};

/// Rules of all-reduce.
pub(super) const REDUCE: Rules =
    Rules { constrain_layout: true, use_global_device_ids: true, uniform: false, covering: true };
/// Rules of all-gather and reduce-scatter, whose members send or receive equal parts.
pub(super) const PARTS: Rules = Rules { uniform: true, ..REDUCE };
/// Rules of all-to-all.
pub(super) const EXCHANGE: Rules =
    Rules { constrain_layout: true, use_global_device_ids: false, uniform: true, covering: true };
/// Rules of ragged-all-to-all.
pub(super) const RAGGED: Rules = Rules { constrain_layout: false, ..EXCHANGE };
/// Rules of collectives with one sender or one receiver.
pub(super) const ROOTED: Rules =
    Rules { constrain_layout: false, use_global_device_ids: false, uniform: false, covering: false };

pub(super) fn read(opcode: Opcode, r: &mut AttributeReader<'_>) -> Result<Collective> {
    Ok(match opcode {
        Opcode::AllReduce | Opcode::AllReduceStart => {
            let participants = Participants::read(r, REDUCE)?;
            read_mode(r)?;
            let is_start = opcode == Opcode::AllReduceStart;
            Collective::AllReduce(AllReduce { participants, computation: r.required("to_apply")?, is_start })
        }
        Opcode::AllGather | Opcode::AllGatherStart => {
            let participants = Participants::read(r, PARTS)?;
            let is_start = opcode == Opcode::AllGatherStart;
            Collective::AllGather(AllGather {
                participants,
                dimension: dimension(r.required("dimensions")?)?,
                is_start,
            })
        }
        Opcode::ReduceScatter => {
            let participants = Participants::read(r, PARTS)?;
            read_mode(r)?;
            let dimension = dimension(r.required("dimensions")?)?;
            Collective::ReduceScatter { participants, dimension, computation: r.required("to_apply")? }
        }
        Opcode::AllToAll => Collective::AllToAll {
            participants: Participants::read(r, EXCHANGE)?,
            dimension: r.optional("dimensions")?.map(dimension).transpose()?,
        },
        Opcode::CollectivePermute | Opcode::CollectivePermuteStart => {
            Collective::CollectivePermute(CollectivePermute {
                channel_id: r.optional("channel_id")?,
                pairs: r.required("source_target_pairs")?,
                slice_sizes: r.optional("slice_sizes")?.unwrap_or_default(),
                is_start: opcode == Opcode::CollectivePermuteStart,
            })
        }
        Opcode::CollectiveBroadcast => Collective::CollectiveBroadcast {
            participants: Participants::read(r, ROOTED)?,
            has_dynamic_root: r.optional("has_dynamic_root")?.unwrap_or_default(),
        },
        Opcode::CollectiveReduce => Collective::CollectiveReduce {
            participants: Participants::read(r, Rules { use_global_device_ids: true, ..ROOTED })?,
            has_dynamic_root: r.optional("has_dynamic_root")?.unwrap_or_default(),
            computation: r.required("to_apply")?,
        },
        Opcode::RaggedAllToAll => {
            let participants = Participants::read(r, RAGGED)?;
            // XLA's parser also accepts and discards this attribute: rows are always exchanged along dimension 0.
            r.optional::<Vec<usize>>("dimensions")?;
            Collective::RaggedAllToAll(participants)
        }
        Opcode::AllReduceDone => Collective::Done(CollectiveDone::AllReduce),
        Opcode::AllGatherDone => Collective::Done(CollectiveDone::AllGather),
        Opcode::CollectivePermuteDone => Collective::Done(CollectiveDone::CollectivePermute),
        Opcode::ReplicaId => Collective::ReplicaId,
        Opcode::PartitionId => Collective::PartitionId,
        other => return Err(Error::internal(format!("{other} is not a collective"))),
    })
}

/// Returns the only element of a list of dimensions.
fn dimension(dimensions: Vec<usize>) -> Result<usize> {
    match dimensions[..] {
        [dimension] => Ok(dimension),
        _ => Err(Error::invalid_argument(format!("dimensions must have one element, it has {}", dimensions.len()))),
    }
}

/// Reads and discards `mode=...`, as XLA does: `channel_id` and `use_global_device_ids` imply the mode.
fn read_mode(r: &mut AttributeReader<'_>) -> Result<()> {
    r.optional::<RestatedMode>("mode").map(drop)
}

struct RestatedMode;

impl AttributeValue for RestatedMode {
    const WHAT: &'static str = "cross_replica, cross_partition, cross_replica_and_partition or flattened_id";

    fn read(cursor: &mut crate::text::AttributeCursor<'_>) -> Result<Self> {
        cursor.choice(&[
            ("cross_replica", ()),
            ("cross_partition", ()),
            ("cross_replica_and_partition", ()),
            ("flattened_id", ()),
        ])?;
        Ok(RestatedMode)
    }

    fn write(&self, _: &mut AttributeWriter<'_>) {}
}

pub(super) fn write(op: &Collective, w: &mut AttributeWriter<'_>) {
    match op {
        Collective::AllReduce(op) => {
            op.participants.write(w);
            op.participants.write_global(w);
            w.attribute("to_apply", &op.computation);
        }
        Collective::AllGather(op) => {
            op.participants.write(w);
            w.attribute("dimensions", &vec![op.dimension]);
            op.participants.write_global(w);
        }
        Collective::ReduceScatter { participants, dimension, computation } => {
            participants.write(w);
            participants.write_global(w);
            w.attribute("dimensions", &vec![*dimension]);
            w.attribute("to_apply", computation);
        }
        Collective::AllToAll { participants, dimension } => {
            participants.write(w);
            if let Some(dimension) = dimension {
                w.attribute("dimensions", &vec![*dimension]);
            }
        }
        Collective::CollectivePermute(op) => {
            write_channel(op.channel_id, w);
            w.attribute("source_target_pairs", &op.pairs);
            if !op.slice_sizes.is_empty() {
                w.attribute("slice_sizes", &op.slice_sizes);
            }
        }
        Collective::CollectiveBroadcast { participants, has_dynamic_root } => {
            participants.write(w);
            if *has_dynamic_root {
                w.attribute("has_dynamic_root", &true);
            }
        }
        Collective::CollectiveReduce { participants, has_dynamic_root, computation } => {
            participants.write(w);
            participants.write_global(w);
            w.attribute("has_dynamic_root", has_dynamic_root);
            w.attribute("to_apply", computation);
        }
        Collective::RaggedAllToAll(participants) => participants.write(w),
        Collective::Done(_) | Collective::ReplicaId | Collective::PartitionId => {}
    }
}
