//! Participants of a collective: groups, the ids that they list, and the rules that they obey.

use std::collections::HashSet;

use super::super::checks::ensure;
use super::ReplicaGroups;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, ModuleAttributes, Result};

/// Attributes of most collectives about the devices that take part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Participants {
    /// Not negative; collectives of one channel belong together across partitions.
    pub channel_id: Option<i64>,
    /// Groups of devices that work together.
    pub groups: ReplicaGroups,
    /// Whether layouts must stay as they are.
    pub constrain_layout: bool,
    /// Whether groups number devices instead of replicas.
    pub use_global_device_ids: bool,
}

/// Meaning of the numbers in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupMode {
    /// Replicas, each partition for itself.
    CrossReplica,
    /// Partitions, each replica for itself.
    CrossPartition,
    /// Replicas, of all partitions together.
    CrossReplicaAndPartition,
    /// Devices: replica times partitions plus partition.
    FlattenedId,
}

/// Attributes of an operation besides `channel_id` and `replica_groups`, and demands on its groups.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub constrain_layout: bool,
    pub use_global_device_ids: bool,
    /// Groups of one size.
    pub uniform: bool,
    /// Everyone is in a group.
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

    /// Everything up to the operation's own attributes but `use_global_device_ids`, which some print after theirs.
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

    /// Meaning of the numbers in the groups, for an operation of those rules.
    pub(super) fn mode(&self, rules: Rules) -> Result<GroupMode> {
        match (self.channel_id, self.use_global_device_ids) {
            (None, false) => Ok(GroupMode::CrossReplica),
            (None, true) => Err(Error::invalid_argument("use_global_device_ids=true needs a channel_id")),
            (Some(_), _) if !rules.use_global_device_ids => Ok(GroupMode::CrossPartition),
            (Some(_), false) => Ok(GroupMode::CrossReplicaAndPartition),
            (Some(_), true) => Ok(GroupMode::FlattenedId),
        }
    }

    /// Checks channel and groups against each other and the module's header. Gives how many devices a group has, `None`
    /// where that differs or the header does not tell.
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
    fn members(self) -> &'static str {
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

/// The channel in protobuf, where 0 says that there is none: that would change what the groups number.
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

/// Number of the things that the groups number; `None` for a program whose header names no devices.
fn declared(attributes: &ModuleAttributes, mode: GroupMode) -> Option<usize> {
    let (replicas, partitions) = (attributes.replica_count.max(1), attributes.num_partitions.max(1));
    let count = match mode {
        GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => replicas,
        GroupMode::CrossPartition => partitions,
        GroupMode::FlattenedId => replicas.saturating_mul(partitions),
    };
    usize::try_from(count).ok().filter(|&n| n > 1)
}

/// The size of the one group of all.
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
