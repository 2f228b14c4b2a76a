//! Groups of calls, and calls outside of groups.

use std::cell::RefCell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use simulated_gpu::libraries::{device, tell};

use super::cliques::{Pending, State};
use super::options::{Failure, Options};
use super::{Nccl, Status};
use crate::refusal::{none, wrong};

static STATE: Mutex<State> = Mutex::new(State::new());

/// Signalled when a member has joined a clique.
static JOINED: Condvar = Condvar::new();

/// Maximum time that a member waits for the others to join.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls of the current group of a thread.
#[derive(Default)]
struct Group {
    depth: usize,
    /// Unique ids that ranks of this thread join.
    joins: Vec<u64>,
    calls: Vec<Pending>,
    /// First error of a call.
    failed: Option<Status>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

pub(super) fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a call: counts it, reports misuse, and returns its status.
pub(super) fn call(name: &'static str, work: impl FnOnce(Option<Failure>) -> Nccl) -> u32 {
    let failure = Options::get().called(name);
    if failure == Some(Failure::Fault) {
        tell(&format!("{name} fails as planned"));
        return failed(Status::SYSTEM_ERROR);
    }
    match work(failure) {
        Ok(()) => Status::SUCCESS.0,
        Err(refusal) => failed(refusal.told("NCCL", name)),
    }
}

fn failed(status: Status) -> u32 {
    GROUP.with_borrow_mut(|group| _ = group.failed.get_or_insert(status));
    status.0
}

fn is_in_group() -> bool {
    GROUP.with_borrow(|group| group.depth > 0)
}

pub(super) fn start() -> Nccl {
    GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            *group = Group::default();
        }
        group.depth += 1;
    });
    Ok(())
}

pub(super) fn end() -> Nccl {
    let ended = GROUP.with_borrow_mut(|group| match group.depth {
        0 => None,
        1 => Some(std::mem::take(group)),
        _ => {
            group.depth -= 1;
            Some(Group::default())
        }
    });
    let Some(Group { joins, calls, failed, .. }) = ended else {
        return wrong(Status::INVALID_USAGE, "ncclGroupEnd without ncclGroupStart");
    };
    if let Some(status) = failed {
        joins.into_iter().for_each(|id| state().fail(id));
        return none(status);
    }
    joins.into_iter().try_for_each(await_members)?;
    submit(calls)
}

/// Joins a clique; outside of a group, waits for the other members.
pub(super) fn join(id: u64, members: usize, rank: usize) -> Nccl<u64> {
    let communicator = state().join(id, members, rank, device())?;
    JOINED.notify_all();
    Options::get().record(&format!("ncclCommInitRank rank {rank} of {members}"));
    if is_in_group() {
        GROUP.with_borrow_mut(|group| group.joins.push(id));
    } else {
        await_members(id)?;
    }
    Ok(communicator)
}

fn await_members(id: u64) -> Nccl {
    let (mut state, begin) = (state(), Instant::now());
    while !state.is_complete(id) {
        if begin.elapsed() > PATIENCE {
            return wrong(Status::SYSTEM_ERROR, "not all ranks of a clique have joined it");
        }
        state = JOINED.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
    }
    Ok(())
}

/// Reports communicators of failed groups that were not aborted, when the process ends.
pub(super) extern "C" fn report_leaks() {
    // Another thread may end with the lock.
    let leaked = STATE.try_lock().map_or(0, |state| state.leaked());
    if leaked > 0 {
        tell(&format!("misuse of NCCL: {leaked} communicators of a group that failed were not aborted"));
    }
}

/// Checks a call, and submits it or adds it to the group.
pub(super) fn add(name: &'static str, pending: Pending, text: &str) -> Nccl {
    let is_in_group = is_in_group();
    let place = {
        let state = state();
        state.check(&pending, is_in_group)?;
        state.describe(pending.communicator)?
    };
    Options::get().record(&format!("{name} {place}: {text}"));
    if is_in_group {
        GROUP.with_borrow_mut(|group| group.calls.push(pending));
        return Ok(());
    }
    submit(vec![pending])
}

/// Submits calls, those of each communicator together.
fn submit(mut calls: Vec<Pending>) -> Nccl {
    let mut state = state();
    while let Some(first) = calls.first() {
        let communicator = first.communicator;
        let (own, others) = calls.into_iter().partition(|call| call.communicator == communicator);
        calls = others;
        state.submit(communicator, &own)?;
    }
    Ok(())
}
