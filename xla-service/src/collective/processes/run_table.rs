//! Runs of an engine: failures, cliques and unread messages.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use xla_hlo::Error;

use super::transport::MessageId;
use crate::collective::{CliqueKey, Communicator, RunKey};

/// Number of runs without local members that are remembered, each for aborted runs that have ended and for runs that
/// other processes have aborted. Messages of older ones would be kept for ever; 4,096 launches later none is under way.
const REMEMBERED: usize = 4096;

/// Communicator whose local members end without a message to the other processes.
pub(super) trait LocalMembers: Communicator {
    /// Ends the local members with this error.
    fn abort_local(&self, error: &Error);
}

/// State of a run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub failure: Option<Error>,
    pub cliques: HashMap<CliqueKey, Arc<dyn LocalMembers>>,
    /// Messages that no member has read yet, by sender.
    pub messages: HashMap<(usize, MessageId), Vec<u8>>,
}

/// Runs by key, and processes that are lost.
#[derive(Debug, Default)]
pub(super) struct RunTable {
    runs: HashMap<RunKey, Run>,
    /// Processes that can neither send nor receive any more.
    pub lost: BTreeMap<usize, Error>,
    /// Aborted runs that have ended here: late messages for them are dropped.
    ended: Remembered,
    /// Runs that another process has aborted before they began here.
    foreign: Remembered,
}

/// Set of the runs that were added last.
#[derive(Debug, Default)]
struct Remembered {
    set: HashSet<RunKey>,
    order: VecDeque<RunKey>,
}

impl Remembered {
    /// Adds a run. Returns the run that is forgotten for it.
    fn add(&mut self, run: RunKey) -> Option<RunKey> {
        if !self.set.insert(run) {
            return None;
        }
        self.order.push_back(run);
        let oldest = self.order.front().copied().filter(|_| self.order.len() > REMEMBERED)?;
        self.order.pop_front();
        self.set.remove(&oldest);
        Some(oldest)
    }
}

impl RunTable {
    /// Returns a run, which begins with this call if it is new.
    pub fn run(&mut self, run: RunKey) -> &mut Run {
        self.runs.entry(run).or_default()
    }

    /// Returns a run that has begun or has messages.
    pub fn get(&mut self, run: RunKey) -> Option<&mut Run> {
        self.runs.get_mut(&run)
    }

    /// Keeps a message until it is read, unless its run has failed.
    pub fn keep(&mut self, from: usize, id: MessageId, bytes: Vec<u8>) {
        let key = RunKey(id.run);
        if self.ended.set.contains(&key) {
            return;
        }
        let run = self.run(key);
        if run.failure.is_none() {
            run.messages.insert((from, id), bytes);
        }
    }

    /// Records the failure of a run. Returns its cliques, or `None` if it has failed before or has ended.
    pub fn fail(&mut self, key: RunKey, error: &Error, is_foreign: bool) -> Option<Vec<Arc<dyn LocalMembers>>> {
        if self.ended.set.contains(&key) {
            return None;
        }
        let run = self.run(key);
        if run.failure.is_some() {
            return None;
        }
        run.failure = Some(error.again());
        run.messages.clear();
        let cliques: Vec<_> = run.cliques.values().cloned().collect();
        if is_foreign && let Some(oldest) = self.foreign.add(key) {
            // It begins as a new run if it is still to come, and then ends by a time-out.
            let is_unused = self.runs.get(&oldest).is_some_and(|run| run.cliques.is_empty());
            if is_unused {
                self.runs.remove(&oldest);
            }
        }
        Some(cliques)
    }

    /// Removes a run that has ended. The caller drops it without the lock.
    pub fn finish(&mut self, key: RunKey) -> Option<Run> {
        let run = self.runs.remove(&key)?;
        if run.failure.is_some() {
            self.ended.add(key);
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(run: u64) -> MessageId {
        MessageId { run, clique: 1, collective: 2, part: 3 }
    }

    fn messages(table: &mut RunTable, run: u64) -> usize {
        table.get(RunKey(run)).map_or(0, |run| run.messages.len())
    }

    #[test]
    fn messages_of_aborted_runs_are_dropped() {
        let mut table = RunTable::default();
        let error = Error::cancelled("stop");
        table.keep(1, id(7), vec![1]);
        assert_eq!(messages(&mut table, 7), 1);
        assert!(table.fail(RunKey(7), &error, false).is_some());
        table.keep(2, id(7), vec![1]);
        assert_eq!(messages(&mut table, 7), 0);
        assert!(table.fail(RunKey(7), &error, true).is_none());
        assert!(table.finish(RunKey(7)).is_some());
        table.keep(2, id(7), vec![1]);
        assert!(table.get(RunKey(7)).is_none() && table.fail(RunKey(7), &error, true).is_none());
        // The end of a run without failure forgets it.
        table.keep(2, id(8), vec![1]);
        assert!(table.finish(RunKey(8)).is_some() && table.finish(RunKey(8)).is_none());
        table.keep(2, id(8), vec![1]);
        assert_eq!(messages(&mut table, 8), 1);
    }

    #[test]
    fn the_number_of_runs_of_other_processes_is_limited() {
        let mut table = RunTable::default();
        for run in 0..2 * REMEMBERED as u64 {
            table.fail(RunKey(run), &Error::cancelled("stop"), true);
        }
        assert_eq!(table.runs.len(), REMEMBERED);
        assert!(table.get(RunKey(REMEMBERED as u64 - 1)).is_none());
        assert!(table.get(RunKey(REMEMBERED as u64)).is_some_and(|run| run.failure.is_some()));
    }
}
