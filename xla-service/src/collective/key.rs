//! Keys of cliques: the run, the instruction and the member devices.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use xla_hlo::{Error, Result};

/// Identity of one launch. All devices of the launch use the same key, also those of other processes. Runs of an engine
/// that are live at the same time have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey(pub u64);

impl RunKey {
    /// Returns a key that this function has not returned before in this process, for runs whose devices all belong to
    /// this process. [`LaunchCounts::next`] returns keys of runs over several processes.
    pub fn next() -> RunKey {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        RunKey(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Numbers the launches of programs over several processes, and derives the keys of their runs.
///
/// Processes do not communicate about keys: a key is a hash of the program, its devices and the number of earlier
/// launches of this program over these devices. Keys agree if all processes launch a program over the same devices
/// equally often, in any order with other launches. A client has one `LaunchCounts`.
#[derive(Debug, Default)]
pub struct LaunchCounts(Mutex<HashMap<[u8; 32], u64>>);

impl LaunchCounts {
    /// Returns the key of the next launch of a program. `program` identifies the program and is equal in all processes,
    /// for example a hash of its text; hashes of [`std::hash::Hash`] differ among builds. `devices` holds the global
    /// ids of the devices in the order of the program's logical ids.
    pub fn next(&self, program: &[u8], devices: &[usize]) -> RunKey {
        let mut launched = Sha256::new();
        launched.update((program.len() as u64).to_le_bytes());
        launched.update(program);
        devices.iter().for_each(|&device| launched.update((device as u64).to_le_bytes()));
        let launched: [u8; 32] = launched.finalize().into();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(launched).or_default();
        let key = Sha256::new().chain_update(launched).chain_update(count.to_le_bytes()).finalize();
        *count += 1;
        RunKey(first_u64(&key))
    }
}

/// Returns the first eight bytes of a hash as a number.
pub(super) fn first_u64(hash: &[u8]) -> u64 {
    hash.iter().take(8).fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

/// Identity of a collective instruction within its program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstructionKey {
    /// Name of the instruction, unique in the program, without `%`. Names in a module are unique only with the name
    /// of their computation.
    pub name: String,
    /// Channel of the instruction.
    pub channel: Option<i64>,
}

impl fmt::Display for InstructionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.name)?;
        self.channel.map_or(Ok(()), |channel| write!(f, " (channel {channel})"))
    }
}

/// Identity of a clique: devices that execute one instruction together in one run.
///
/// Keys of different runs or different instructions differ, so that their members never meet. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CliqueKey {
    run: RunKey,
    instruction: Arc<InstructionKey>,
    devices: Arc<[usize]>,
}

impl CliqueKey {
    /// Creates a key. `devices` holds the global ids of the members in group order: the index is the member's rank.
    /// Fails if there are none, or if one occurs twice.
    pub fn new(run: RunKey, instruction: Arc<InstructionKey>, devices: Arc<[usize]>) -> Result<CliqueKey> {
        if devices.is_empty() {
            return Err(Error::invalid_argument(format!("{instruction} has a group without devices")));
        }
        let mut seen = HashSet::with_capacity(devices.len());
        match devices.iter().find(|device| !seen.insert(**device)) {
            Some(twice) => Err(Error::invalid_argument(format!("{instruction} names device {twice} twice in a group"))),
            None => Ok(CliqueKey { run, instruction, devices }),
        }
    }

    /// Returns the run.
    pub fn run(&self) -> RunKey {
        self.run
    }

    /// Returns the instruction.
    pub fn instruction(&self) -> &InstructionKey {
        &self.instruction
    }

    /// Returns the global ids of the members, by rank.
    pub fn devices(&self) -> &[usize] {
        &self.devices
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.devices.len()
    }

    /// Returns the rank of a device: its position in the group.
    pub fn rank(&self, device: usize) -> Option<usize> {
        self.devices.iter().position(|&member| member == device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_positions_and_groups_have_distinct_devices() {
        let instruction = Arc::new(InstructionKey { name: "all-reduce.1".into(), channel: Some(3) });
        let key = |devices: &[usize]| CliqueKey::new(RunKey(1), instruction.clone(), devices.into());
        let clique = key(&[4, 0, 2]).unwrap();
        assert_eq!([4, 0, 2, 1].map(|device| clique.rank(device)), [Some(0), Some(1), Some(2), None]);
        let message = |devices: &[usize]| key(devices).unwrap_err().to_string();
        assert_eq!(message(&[]), "%all-reduce.1 (channel 3) has a group without devices");
        assert_eq!(message(&[1, 2, 1]), "%all-reduce.1 (channel 3) names device 1 twice in a group");
        assert_ne!(RunKey::next(), RunKey::next());
    }

    #[test]
    fn keys_of_launches_agree_over_processes_in_any_order() {
        let [one, other] = [(); 2].map(|()| LaunchCounts::default());
        let launches: [(&[u8], &[usize]); 4] = [(b"a", &[0, 1]), (b"a", &[1, 0]), (b"ab", &[0, 1]), (b"", &[])];
        let key = |counts: &LaunchCounts, i: usize| counts.next(launches[i].0, launches[i].1);
        let first: Vec<RunKey> = [0, 0, 1, 2, 3, 2].map(|i| key(&one, i)).into();
        let second: Vec<RunKey> = [3, 2, 0, 2, 1, 0].map(|i| key(&other, i)).into();
        assert_eq!([0, 1, 2, 3, 4, 5].map(|i| first[i]), [2, 5, 4, 1, 0, 3].map(|i| second[i]));
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), 6);
    }
}
