//! Participants of a collective: replica groups, the meaning of their ids, and rules for them.

use std::collections::HashSet;

use super::super::checks::ensure;
use super::ReplicaGroups;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, ModuleAttributes, Result};

/// Attributes that select the devices of a collective.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Participants {
    /// Channel, not negative. Collectives of one channel communicate across partitions.
    pub channel_id: Option<i64>,
    /// Groups of devices that communicate.
    pub groups: ReplicaGroups,
    /// Whether layouts must not change.
    pub constrain_layout: bool,
    /// Whether groups contain device ids instead of replica ids.
    pub use_global_device_ids: bool,
}

/// Meaning of the ids in replica groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupMode {
    /// Replica ids; each partition communicates separately.
    CrossReplica,
    /// Partition ids; each replica communicates separately.
    CrossPartition,
    /// Replica ids; a group comprises all partitions of its replicas.
    CrossReplicaAndPartition,
    /// Device ids: `replica * partitions + partition`.
    FlattenedId,
}

/// Attributes that an operation has in addition to `channel_id` and `replica_groups`, and requirements on its groups.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub constrain_layout: bool,
    pub use_global_device_ids: bool,
    /// Whether all groups must have the same size.
    pub uniform: bool,
    /// Whether every participant must be in a group.
    pub covering: bool,
}

impl Participants {
    pub(super) fn read(r: &mut AttributeReader<'_>, rules: Rules) -> Result<Participants> {
        let mut participants = Participants {
            channel_id: r.optional("channel_id")?,
            groups: r.optional("replica_groups")?.unwrap_or_default(),
            ..Participants::default()
        };
        if rules.constrain_layout {
            participants.constrain_layout = r.optional("constrain_layout")?.unwrap_or_default();
        }
        if rules.use_global_device_ids {
            participants.use_global_device_ids = r.optional("use_global_device_ids")?.unwrap_or_default();
        }
        Ok(participants)
    }

    /// Writes the attributes that precede the operation's own. Excludes `use_global_device_ids`, which some operations
    /// print after their own.
    pub(super) fn write(&self, w: &mut AttributeWriter<'_>) {
        write_channel(self.channel_id, w);
        w.attribute("replica_groups", &self.groups);
        if self.constrain_layout {
            w.attribute("constrain_layout", &true);
        }
    }

    pub(super) fn write_global(&self, w: &mut AttributeWriter<'_>) {
        if self.use_global_device_ids {
            w.attribute("use_global_device_ids", &true);
        }
    }

    /// Returns the meaning of the ids in the groups, for an operation with these rules.
    pub(super) fn mode(&self, rules: Rules) -> Result<GroupMode> {
        match (self.channel_id, self.use_global_device_ids) {
            (None, false) => Ok(GroupMode::CrossReplica),
            (None, true) => Err(Error::invalid_argument("use_global_device_ids=true needs a channel_id")),
            (Some(_), _) if !rules.use_global_device_ids => Ok(GroupMode::CrossPartition),
            (Some(_), false) => Ok(GroupMode::CrossReplicaAndPartition),
            (Some(_), true) => Ok(GroupMode::FlattenedId),
        }
    }

    /// Checks channel and groups against each other and the module's header. Returns the number of devices of a group,
    /// or `None` if groups differ in size or the header declares no devices.
    pub(super) fn check(&self, attributes: &ModuleAttributes, rules: Rules) -> Result<Option<usize>> {
        check_channel(self.channel_id)?;
        let mode = self.mode(rules)?;
        let declared = declared(attributes, mode);
        if self.groups.is_everyone() {
            ensure!(mode != GroupMode::FlattenedId, "replica_groups cannot be empty when use_global_device_ids=true");
            return Ok(everyone(attributes, mode));
        }
        let groups = self.groups.listed()?;
        let members: usize = groups.iter().map(Vec::len).sum();
        check_members(&groups, members, rules)?;
        ensure!(
            !rules.covering || declared.is_none_or(|n| n == members),
            "replica_groups name {members} {}, the module has {}",
            mode.members(),
            declared.unwrap_or_default()
        );
        let size = groups.first().map_or(0, Vec::len);
        let is_uniform = groups.iter().all(|g| g.len() == size);
        ensure!(is_uniform || !rules.uniform, "replica_groups must all have the same size");
        let partitions = usize::try_from(attributes.num_partitions.max(1)).ok();
        let each = if mode == GroupMode::CrossReplicaAndPartition { partitions } else { Some(1) };
        Ok(each.filter(|_| is_uniform).and_then(|each| size.checked_mul(each)))
    }
}

impl GroupMode {
    pub(super) fn members(self) -> &'static str {
        match self {
            GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => "replicas",
            GroupMode::CrossPartition => "partitions",
            GroupMode::FlattenedId => "devices",
        }
    }
}

pub(in crate::ops) fn check_channel(channel_id: Option<i64>) -> Result<()> {
    match channel_id {
        Some(id) if id < 0 => Err(Error::invalid_argument(format!("channel_id must not be negative, it is {id}"))),
        Some(_) | None => Ok(()),
    }
}

/// Returns the channel for protobuf, where 0 means no channel. Rejects channel 0, since losing it would change the
/// meaning of the groups' ids.
pub(super) fn channel_number(channel_id: Option<i64>) -> Result<i64> {
    match channel_id {
        Some(0) => Err(Error::invalid_argument(
            "channel_id=0 cannot be written as protobuf, where 0 is no channel; give it another number",
        )),
        channel_id => Ok(channel_id.unwrap_or(0)),
    }
}

pub(super) fn write_channel(channel_id: Option<i64>, w: &mut AttributeWriter<'_>) {
    if let Some(id) = channel_id {
        w.attribute("channel_id", &id);
    }
}

/// Returns the number of valid ids in groups, or `None` if the module's header does not declare more than one.
fn declared(attributes: &ModuleAttributes, mode: GroupMode) -> Option<usize> {
    let (replicas, partitions) = (attributes.replica_count.max(1), attributes.num_partitions.max(1));
    let count = match mode {
        GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => replicas,
        GroupMode::CrossPartition => partitions,
        GroupMode::FlattenedId => replicas.saturating_mul(partitions),
    };
    usize::try_from(count).ok().filter(|&n| n > 1)
}

/// Returns the size of the implicit group of all participants.
fn everyone(attributes: &ModuleAttributes, mode: GroupMode) -> Option<usize> {
    match mode {
        GroupMode::CrossReplicaAndPartition => declared(attributes, GroupMode::FlattenedId),
        GroupMode::CrossReplica | GroupMode::CrossPartition | GroupMode::FlattenedId => declared(attributes, mode),
    }
}

fn check_members(groups: &[Vec<i64>], members: usize, rules: Rules) -> Result<()> {
    let mut seen = HashSet::with_capacity(members);
    for group in groups {
        ensure!(!group.is_empty(), "replica_groups holds an empty group");
        for &member in group {
            ensure!(member >= 0, "replica_groups names {member}, which is negative");
            ensure!(seen.insert(member), "replica_groups names {member} twice");
        }
    }
    if rules.covering
        && let Some(missing) = (0..members as i64).find(|m| !seen.contains(m))
    {
        return Err(Error::invalid_argument(format!("replica_groups names {members} numbers, but not {missing}")));
    }
    Ok(())
}
