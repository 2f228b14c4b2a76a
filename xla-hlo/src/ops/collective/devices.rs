//! Devices that take part in a collective, computed from the replica or partition ids in its attributes.

use std::collections::BTreeSet;

use super::super::checks::ensure;
use super::attributes::{EXCHANGE, PARTS, RAGGED, REDUCE, ROOTED};
use super::participants::{GroupMode, Participants, Rules};
use super::{AllGather, AllReduce, Collective, CollectivePermute};
use crate::sdy::product;
use crate::{Error, ModuleAttributes, Result};

/// Numbers of replicas and partitions of a program; a device id is `replica * partitions + partition`.
struct Devices {
    replicas: i64,
    partitions: i64,
}

impl Devices {
    fn of(attributes: &ModuleAttributes) -> Result<Devices> {
        let count = |count: u64| usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        let (replicas, partitions) = (count(attributes.replica_count), count(attributes.num_partitions));
        product(&[replicas, partitions])?;
        Ok(Devices { replicas: replicas as i64, partitions: partitions as i64 })
    }

    /// Returns the groups as device ids. Fails if they break a rule or name an id that the program does not have.
    fn groups(&self, participants: &Participants, rules: Rules) -> Result<Vec<Vec<i64>>> {
        let mode = participants.mode(rules)?;
        let everyone = match mode {
            GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => self.replicas,
            GroupMode::CrossPartition => self.partitions,
            GroupMode::FlattenedId => self.replicas * self.partitions,
        };
        let groups = match participants.groups.is_everyone() {
            true => vec![(0..everyone).collect()],
            false => participants.groups.listed()?,
        };
        if let Some(id) = groups.iter().flatten().find(|&&id| id >= everyone) {
            let (id, members) = (*id, mode.members());
            return Err(Error::invalid_argument(format!(
                "replica_groups names {id}, the module has {everyone} {members}"
            )));
        }
        let map = |f: &dyn Fn(i64) -> i64| groups.iter().map(|group| group.iter().map(|&n| f(n)).collect()).collect();
        Ok(match mode {
            GroupMode::FlattenedId => groups,
            GroupMode::CrossReplica => {
                (0..self.partitions).flat_map(|part| -> Vec<_> { map(&|n| n * self.partitions + part) }).collect()
            }
            GroupMode::CrossPartition => {
                (0..self.replicas).flat_map(|replica| -> Vec<_> { map(&|n| replica * self.partitions + n) }).collect()
            }
            GroupMode::CrossReplicaAndPartition => {
                let all = |&n| (0..self.partitions).map(move |part| n * self.partitions + part);
                groups.iter().map(|group| group.iter().flat_map(all).collect()).collect()
            }
        })
    }
}

impl Collective {
    fn participants(&self) -> Option<(&Participants, Rules)> {
        Some(match self {
            Collective::AllReduce(AllReduce { participants, .. }) => (participants, REDUCE),
            Collective::AllGather(AllGather { participants, .. }) | Collective::ReduceScatter { participants, .. } => {
                (participants, PARTS)
            }
            Collective::AllToAll { participants, .. } => (participants, EXCHANGE),
            Collective::CollectiveBroadcast { participants, .. } => (participants, ROOTED),
            Collective::CollectiveReduce { participants, .. } => {
                (participants, Rules { use_global_device_ids: true, ..ROOTED })
            }
            Collective::RaggedAllToAll(participants) => (participants, RAGGED),
            Collective::CollectivePermute(_)
            | Collective::Done(_)
            | Collective::ReplicaId
            | Collective::PartitionId => return None,
        })
    }

    /// Returns the groups of communicating devices. Within a group they have the order of the collective's members. A
    /// device id is `replica * partitions + partition`. Empty for operations without groups.
    pub fn device_groups(&self, attributes: &ModuleAttributes) -> Result<Vec<Vec<i64>>> {
        match self.participants() {
            Some((participants, rules)) => {
                participants.check(attributes, rules)?;
                Devices::of(attributes)?.groups(participants, rules)
            }
            None => Ok(Vec::new()),
        }
    }

    /// Returns the devices that execute the operation together with `device`. A collective-permute connects the devices
    /// of a chain of pairs, in ascending order. Devices in no group execute the operation alone.
    pub fn meeting(&self, attributes: &ModuleAttributes, device: usize) -> Result<Meeting> {
        let groups = match self {
            Collective::CollectivePermute(op) => connected(&op.device_pairs(attributes)?),
            op => op.device_groups(attributes)?,
        };
        let own = groups.into_iter().find(|group| group.iter().any(|&member| usize::try_from(member) == Ok(device)));
        let is_group = own.is_some();
        // Ids are not negative: they are below the number of devices, and `check` has refused negative ones.
        let members = own.map_or_else(|| vec![device], |own| own.into_iter().map(|member| member as usize).collect());
        Ok(Meeting { members, is_group })
    }

    /// Whether the result depends on the partition: on its id, or on values of other partitions.
    pub fn crosses_partitions(&self) -> bool {
        match self {
            Collective::PartitionId => true,
            Collective::CollectivePermute(op) => op.channel_id.is_some(),
            op => op.participants().is_some_and(|(participants, _)| participants.channel_id.is_some()),
        }
    }
}

/// Devices that execute a collective together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Ids of the devices, in the order of their group.
    pub members: Vec<usize>,
    /// Whether the collective names the members as a group.
    pub is_group: bool,
}

/// Returns the connected components of a graph, each in ascending order.
fn connected(pairs: &[(i64, i64)]) -> Vec<Vec<i64>> {
    let mut components: Vec<BTreeSet<i64>> = Vec::new();
    for &(from, to) in pairs {
        let mut joined = BTreeSet::from([from, to]);
        components.retain(|component| {
            let is_apart = component.is_disjoint(&joined);
            if !is_apart {
                joined.extend(component);
            }
            is_apart
        });
        components.push(joined);
    }
    components.into_iter().map(|component| component.into_iter().collect()).collect()
}

impl CollectivePermute {
    /// Returns the pairs of sending and receiving devices. Fails if a pair names an id that the program does not have.
    pub fn device_pairs(&self, attributes: &ModuleAttributes) -> Result<Vec<(i64, i64)>> {
        let devices = Devices::of(attributes)?;
        let (count, members) = match self.channel_id {
            Some(_) => (devices.partitions, GroupMode::CrossPartition.members()),
            None => (devices.replicas, GroupMode::CrossReplica.members()),
        };
        for &id in self.pairs.iter().flatten() {
            ensure!((0..count).contains(&id), "source_target_pairs names {id}, the module has {count} {members}");
        }
        let pairs = || self.pairs.iter().filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)));
        let (others, own) = match self.channel_id {
            Some(_) => ((0..devices.replicas), (devices.partitions, 1)),
            None => ((0..devices.partitions), (1, devices.partitions)),
        };
        let device = |other: i64, n: i64| other * own.0 + n * own.1;
        Ok(others.flat_map(|o| pairs().map(move |(from, to)| (device(o, from), device(o, to)))).collect())
    }
    /// Returns the pairs among devices of a [meeting](Collective::meeting), as positions in `members`.
    pub fn pairs_among(&self, attributes: &ModuleAttributes, members: &[usize]) -> Result<Vec<(usize, usize)>> {
        let place = |device: i64| members.iter().position(|&member| member as i64 == device);
        let pairs = self.device_pairs(attributes)?;
        Ok(pairs.into_iter().filter_map(|(from, to)| place(from).zip(place(to))).collect())
    }
}
