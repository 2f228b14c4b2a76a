//! Cliques of the process, the order of their collectives, and the work that runs wait for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use cudarc::driver::sys::CUstream;
use xla_hlo::{Error, Result};
use xla_service::collective::RunKey;

use super::communicators::{Call, Communicators};
use super::lock::lock;
use super::meeting::{Meeting, MeetingKey, Request};
use super::progress::Progress;
use super::work::{Pending, Work};
use crate::cuda::context::Context;
use crate::cuda::stream::queue::{Queue, QueueMark};

/// Maximum number of cliques that are kept. Another one replaces the least recently used one.
const MOST_CLIQUES: usize = 64;

/// Communicators of this process's devices, and the work that was sent to them.
#[derive(Debug, Default)]
pub(crate) struct Collectives {
    meetings: Mutex<HashMap<MeetingKey, Arc<Meeting>>>,
    cliques: Mutex<Cliques>,
    /// Last collective of each device, by its ordinal. Locked while work is sent, so that all devices receive all
    /// collectives in one order.
    last: Mutex<HashMap<usize, Arc<QueueMark>>>,
    /// Work that devices wait for, in the order of their streams.
    pending: Mutex<HashMap<PendingKey, VecDeque<Pending>>>,
}

/// Run, and ordinal of a device.
pub(super) type PendingKey = (RunKey, usize);

#[derive(Debug, Default)]
struct Cliques {
    /// Cliques by the ordinals of their devices, by rank.
    known: HashMap<Vec<usize>, Known>,
    /// Number of look-ups.
    uses: u64,
}

/// Place of a clique, which is locked while the clique is created.
type Slot = Arc<Mutex<Option<Arc<Communicators>>>>;

/// Clique, and the number of its last look-up.
#[derive(Debug, Default)]
struct Known {
    clique: Slot,
    last_use: u64,
}

impl Collectives {
    /// Returns the collectives of the process, which all platform objects share: their devices have the same contexts.
    pub fn shared() -> Arc<Collectives> {
        static SHARED: Mutex<Weak<Collectives>> = Mutex::new(Weak::new());
        let mut shared = lock(&SHARED);
        shared.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Collectives::default());
            *shared = Arc::downgrade(&new);
            new
        })
    }

    /// Adds the request of a member to its meeting.
    pub(super) fn arrive(&self, key: &MeetingKey, rank: usize, request: Request) -> Result<Arc<Meeting>> {
        let new = || Arc::new(Meeting::new(key.devices.len()));
        let meeting = lock(&self.meetings).entry(key.clone()).or_insert_with(new).clone();
        meeting.add(rank, request).map_err(|error| error.context(&*key.instruction))?;
        Ok(meeting)
    }

    /// Removes a meeting, once all members have arrived or one of them has failed.
    pub(super) fn close(&self, key: &MeetingKey) {
        let closed = lock(&self.meetings).remove(key);
        // Requests own memory, which is dropped without the lock.
        drop(closed);
    }

    /// Returns the clique of these devices, and creates it at the first use and after an abort.
    pub(super) fn clique(&self, contexts: Vec<Arc<Context>>) -> Result<Arc<Communicators>> {
        let ordinals: Vec<usize> = contexts.iter().map(|context| context.ordinal()).collect();
        check_distinct(&ordinals)?;
        let (clique, replaced) = lock(&self.cliques).find(&ordinals);
        drop(replaced);
        let mut known = lock(&clique);
        if let Some(clique) = known.as_ref().filter(|clique| clique.failure().is_none()) {
            return Ok(clique.clone());
        }
        let made = Communicators::new(contexts).map_err(|error| error.context(format_args!("devices {ordinals:?}")))?;
        tracing::debug!(devices = ?ordinals, "an NCCL clique is created");
        let made = Arc::new(made);
        *known = Some(made.clone());
        Ok(made)
    }

    /// Sends the work of all members to their streams, in one order on all devices.
    pub(super) fn send(
        &self,
        key: &MeetingKey,
        clique: &Arc<Communicators>,
        requests: &[Request],
    ) -> Result<Arc<Work>> {
        let queues: Vec<Arc<Queue>> = requests.iter().map(|request| request.queue.clone()).collect();
        let ordinals: Vec<usize> = queues.iter().map(|queue| queue.context().ordinal()).collect();
        let calls: Vec<&[Call]> = requests.iter().map(|request| &request.calls[..]).collect();
        let mut last = lock(&self.last);
        for (queue, ordinal) in queues.iter().zip(&ordinals) {
            last.get(ordinal).map_or(Ok(()), |last| queue.wait_for(last))?;
        }
        let begins = queues.iter().map(|queue| queue.mark()).collect::<Result<Vec<_>>>()?;
        let sent = nested(&queues, &mut Vec::with_capacity(queues.len()), &|streams| clique.send(&calls, streams));
        let ends = sent.and_then(|()| queues.iter().map(|queue| queue.mark().map(Arc::new)).collect());
        let ends: Vec<Arc<QueueMark>> = match ends {
            Ok(ends) => ends,
            Err(error) => {
                drop(last);
                let error = error.context(format_args!("devices {ordinals:?}"));
                // Some of the work may be in the streams.
                clique.abort(&error);
                return Err(error);
            }
        };
        last.extend(ordinals.iter().copied().zip(ends.iter().cloned()));
        let progress = Arc::new(Progress::new(begins, ends));
        clique.add_work(&progress);
        let (instruction, clique) = (key.instruction.clone(), clique.clone());
        let work = Arc::new(Work { instruction, ordinals, clique, progress });
        self.add_pending(key.run, &work);
        Ok(work)
    }

    /// Makes each member wait for its part of the work, and forgets earlier work that is complete.
    fn add_pending(&self, run: RunKey, work: &Arc<Work>) {
        let mut pending = lock(&self.pending);
        for (rank, &ordinal) in work.ordinals.iter().enumerate() {
            let list = pending.entry((run, ordinal)).or_default();
            while list.front().is_some_and(|first| first.is_over().unwrap_or(false)) {
                list.pop_front();
            }
            list.push_back(Pending::new(work.clone(), rank));
        }
    }

    /// Returns the work of a run on a device, and forgets it.
    pub(super) fn take_pending(&self, key: PendingKey) -> VecDeque<Pending> {
        lock(&self.pending).remove(&key).unwrap_or_default()
    }

    /// Adds work that was taken and has failed.
    pub(super) fn restore_pending(&self, key: PendingKey, failed: Vec<Pending>) {
        if !failed.is_empty() {
            lock(&self.pending).entry(key).or_default().extend(failed);
        }
    }

    /// Removes the work from the other members, and makes this device wait for all ranks. After a meeting that failed:
    /// other members may have ended before the work was sent.
    pub(super) fn adopt(&self, run: RunKey, ordinal: usize, work: &Arc<Work>) {
        lock(&self.pending).retain(|&(other, device), list| {
            if other == run && device == ordinal {
                list.iter_mut().filter(|own| Arc::ptr_eq(&own.work, work)).for_each(Pending::wait_for_all);
            } else if other == run {
                list.retain(|other| !Arc::ptr_eq(&other.work, work));
            }
            !list.is_empty()
        });
    }
}

impl Cliques {
    /// Returns the place of a clique, and the clique that it replaces.
    fn find(&mut self, ordinals: &[usize]) -> (Slot, Option<Known>) {
        self.uses += 1;
        let mut replaced = None;
        if !self.known.contains_key(ordinals) && self.known.len() >= MOST_CLIQUES {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.last_use).map(|(key, _)| key.clone());
            // Runs that still use the clique keep it alive.
            replaced = oldest.and_then(|oldest| self.known.remove(&oldest));
        }
        let known = self.known.entry(ordinals.to_vec()).or_default();
        known.last_use = self.uses;
        (known.clique.clone(), replaced)
    }
}

/// Calls `work` with the streams of all queues, each of which counts it as one piece of work.
fn nested(queues: &[Arc<Queue>], streams: &mut Vec<CUstream>, work: &dyn Fn(&[CUstream]) -> Result<()>) -> Result<()> {
    match queues.split_first() {
        Some((first, others)) => first.send_to_library(|stream| {
            streams.push(stream);
            nested(others, streams, work)
        }),
        None => work(streams),
    }
}

/// Returns an error if two ranks are on one device, which NCCL refuses.
fn check_distinct(ordinals: &[usize]) -> Result<()> {
    let mut seen = HashSet::new();
    match ordinals.iter().find(|ordinal| !seen.insert(**ordinal)) {
        Some(twice) => {
            Err(Error::failed_precondition(format!("two members of a group are on GPU {twice}: {ordinals:?}")))
        }
        None => Ok(()),
    }
}
