//! Participants of collectives: group modes and groups.

use super::writer::Writer;

/// Participants of a collective.
pub struct Participants {
    /// Attributes, each with a leading comma.
    pub attributes: String,
    /// Number of devices of each group; `None` if groups have different sizes.
    pub size: Option<usize>,
    /// Replica ids, partition ids or device ids of each group, by mode.
    pub groups: Vec<Vec<usize>>,
    /// Kind of the ids.
    pub mode: Mode,
}

/// Group mode: kind of the ids in the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Replicas, for each partition.
    Replicas,
    /// Partitions, for each replica.
    Partitions,
    /// Replicas, with all of their partitions.
    Both,
    /// Devices.
    Devices,
}

impl Writer<'_> {
    /// Returns participants of a reduction or a gather, which may use device ids. Groups of a reduction may have
    /// `unequal` sizes.
    pub fn reducing(&mut self, unequal: bool) -> Participants {
        let mode = self.random.pick(&[Mode::Replicas, Mode::Both, Mode::Devices]);
        self.participants(mode, unequal)
    }

    /// Returns participants of a reduction to one device.
    pub fn collecting(&mut self) -> Participants {
        let mode = self.random.pick(&[Mode::Replicas, Mode::Both]);
        self.participants(mode, true)
    }

    /// Returns participants of an exchange: replicas or partitions.
    pub fn exchanging(&mut self) -> Participants {
        let mode = self.random.pick(&[Mode::Replicas, Mode::Partitions]);
        self.participants(mode, false)
    }

    fn participants(&mut self, mode: Mode, unequal: bool) -> Participants {
        let count = self.count(mode);
        let mut attributes = String::new();
        if mode != Mode::Replicas {
            attributes += &self.channel();
        }
        if mode == Mode::Devices {
            attributes += ", use_global_device_ids=true";
        }
        let scale = if mode == Mode::Both { self.grid.partitions } else { 1 };
        if mode != Mode::Devices && self.random.percent(25) {
            return Participants { attributes, size: Some(count * scale), groups: vec![(0..count).collect()], mode };
        }
        let divisors: Vec<usize> = (1..=count).filter(|n| count.is_multiple_of(*n)).collect();
        let size = self.random.pick(&divisors);
        if self.random.percent(25) {
            let groups = (0..count / size).map(|group| (group * size..(group + 1) * size).collect()).collect();
            attributes += &format!(", replica_groups=[{},{size}]<=[{count}]", count / size);
            return Participants { attributes, size: Some(size * scale), groups, mode };
        }
        let order = self.random.permutation(count);
        let (groups, size): (Vec<Vec<usize>>, _) = if unequal && count > 2 && self.random.percent(40) {
            let cut = self.random.between(1, count - 1);
            (vec![order[..cut].to_vec(), order[cut..].to_vec()], None)
        } else {
            (order.chunks(size).map(<[usize]>::to_vec).collect(), Some(size * scale))
        };
        attributes += &format!(", replica_groups={}", listed(&groups));
        Participants { attributes, size, groups, mode }
    }

    /// Returns the number of ids of a mode.
    pub fn count(&self, mode: Mode) -> usize {
        match mode {
            Mode::Replicas | Mode::Both => self.grid.replicas,
            Mode::Partitions => self.grid.partitions,
            Mode::Devices => self.grid.device_count(),
        }
    }

    /// Returns the attribute of a new channel.
    pub fn channel(&mut self) -> String {
        self.channels += 1;
        format!(", channel_id={}", self.channels)
    }

    /// Returns the channel and the pairs of a permutation: chains and rings; some devices receive nothing.
    pub fn pairs(&mut self) -> String {
        let mode = self.random.pick(&[Mode::Replicas, Mode::Partitions]);
        let channel = if mode == Mode::Partitions { self.channel() } else { String::new() };
        let count = self.count(mode);
        let (sources, targets) = (self.random.permutation(count), self.random.permutation(count));
        let used = if self.random.percent(60) { count } else { self.random.between(0, count) };
        let pairs: Vec<Vec<usize>> = sources.into_iter().zip(targets).take(used).map(|(a, b)| vec![a, b]).collect();
        format!("{channel}, source_target_pairs={}", listed(&pairs))
    }
}

impl Participants {
    /// Returns the rank of a device in its group, for exchanges.
    pub fn rank(&self, id: usize) -> Option<usize> {
        self.groups.iter().find_map(|group| group.iter().position(|&member| member == id))
    }
}

/// Formats lists of ids, such as `{{0,1},{2,3}}`.
pub fn listed(lists: &[Vec<usize>]) -> String {
    let list = |list: &Vec<usize>| format!("{{{}}}", list.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
    format!("{{{}}}", lists.iter().map(list).collect::<Vec<_>>().join(","))
}
