//! Cliques of a platform, and the meetings of their members.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUstream;
use xla_hlo::{Error, Result};
use xla_service::collective::{InstructionKey, RunKey};

use super::communicators::{Call, Communicators};
use super::pending::Pending;
use crate::cuda::context::Context;
use crate::cuda::memory::CudaMemory;
use crate::cuda::stream::queue::{Queue, QueueMark};

/// Communicators of the devices of a platform, and the work that was sent to them.
#[derive(Debug, Default)]
pub(crate) struct Collectives {
    /// Members that have arrived, by rank.
    meetings: Mutex<HashMap<MeetingKey, Vec<Option<Request>>>>,
    /// Locked while work is sent, so that all devices receive all collectives in one order.
    sender: Mutex<Sender>,
    /// Work that devices wait for at the end of their runs.
    pending: Mutex<HashMap<(RunKey, usize), Vec<Pending>>>,
}

/// Identity of a meeting. Members leave it before they arrive again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct MeetingKey {
    pub run: RunKey,
    pub instruction: Arc<InstructionKey>,
    /// Members by rank, as ids in the program.
    pub devices: Arc<[usize]>,
}

/// Calls of a member for its stream.
#[derive(Debug)]
pub(super) struct Request {
    pub queue: Arc<Queue>,
    pub calls: Vec<Call>,
    /// Memory of the calls. It is kept until they are in the stream, also if the member is cancelled before.
    pub memory: Vec<CudaMemory>,
}

#[derive(Debug, Default)]
struct Sender {
    /// Cliques by the ordinals of their devices, by rank.
    cliques: HashMap<Vec<usize>, Arc<Communicators>>,
    /// Last collective of each device, by its ordinal.
    last: HashMap<usize, Arc<QueueMark>>,
}

impl Collectives {
    /// Adds the request of a member to its meeting.
    pub(super) fn arrive(&self, key: &MeetingKey, rank: usize, request: Request) -> Result<()> {
        let (mut meetings, members) = (lock(&self.meetings), key.devices.len());
        let meeting = meetings.entry(key.clone()).or_insert_with(|| (0..members).map(|_| None).collect());
        match meeting.get_mut(rank) {
            Some(place @ None) => {
                *place = Some(request);
                Ok(())
            }
            _ => Err(Error::internal(format!("rank {rank} arrived twice at {}", key.instruction))),
        }
    }

    /// Removes a meeting, and returns the requests by rank.
    pub(super) fn leave(&self, key: &MeetingKey) -> Option<Vec<Request>> {
        lock(&self.meetings).remove(key)?.into_iter().collect()
    }

    /// Sends the work of all members to their streams, in one order on all devices.
    pub(super) fn send(&self, key: &MeetingKey, requests: Vec<Request>) -> Result<()> {
        let mut sender = lock(&self.sender);
        let contexts: Vec<Arc<Context>> = requests.iter().map(|request| request.queue.context().clone()).collect();
        let ordinals: Vec<usize> = contexts.iter().map(|context| context.ordinal()).collect();
        check_distinct(&ordinals)?;
        let clique = sender.clique(&ordinals, contexts)?;
        for request in &requests {
            if let Some(last) = sender.last.get(&request.queue.context().ordinal()) {
                request.queue.wait_for(last)?;
            }
        }
        let queues: Vec<Arc<Queue>> = requests.iter().map(|request| request.queue.clone()).collect();
        let calls: Vec<&[Call]> = requests.iter().map(|request| &request.calls[..]).collect();
        let sent = nested(&queues, &mut Vec::with_capacity(queues.len()), &|streams| clique.send(&calls, streams));
        if let Err(error) = sent {
            let error = error.context(format_args!("devices {ordinals:?}"));
            sender.abort(&clique, &error);
            return Err(error);
        }
        for queue in queues {
            let ordinal = queue.context().ordinal();
            let end = Arc::new(queue.mark()?);
            sender.last.insert(ordinal, end.clone());
            let own = Pending { instruction: key.instruction.clone(), clique: clique.clone(), end };
            lock(&self.pending).entry((key.run, ordinal)).or_default().push(own);
        }
        // From here on, the order of the streams protects the memory.
        requests.into_iter().for_each(|request| drop(request.memory));
        Ok(())
    }

    /// Returns the work of a run on a device, and forgets it.
    pub(super) fn take_pending(&self, run: RunKey, ordinal: usize) -> Vec<Pending> {
        lock(&self.pending).remove(&(run, ordinal)).unwrap_or_default()
    }

    /// Forgets the work of a run on all devices but one. For runs that have failed before all members knew of the work.
    pub(super) fn forget_others(&self, run: RunKey, ordinal: usize) {
        lock(&self.pending).retain(|&(other, device), _| other != run || device == ordinal);
    }

    /// Ends the work of a clique. Later collectives of its devices create another one.
    pub(super) fn abort(&self, clique: &Arc<Communicators>, why: &Error) {
        lock(&self.sender).abort(clique, why);
    }
}

impl Sender {
    /// Returns the clique of these devices, and creates it at the first use.
    fn clique(&mut self, ordinals: &[usize], contexts: Vec<Arc<Context>>) -> Result<Arc<Communicators>> {
        if let Some(clique) = self.cliques.get(ordinals) {
            return Ok(clique.clone());
        }
        let made = Communicators::new(contexts).map_err(|error| error.context(format_args!("devices {ordinals:?}")))?;
        tracing::debug!(devices = ?ordinals, "an NCCL clique is created");
        let made = Arc::new(made);
        self.cliques.insert(ordinals.to_vec(), made.clone());
        Ok(made)
    }

    fn abort(&mut self, clique: &Arc<Communicators>, why: &Error) {
        self.cliques.retain(|_, other| !Arc::ptr_eq(other, clique));
        clique.abort(why);
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

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while the lock is held.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
