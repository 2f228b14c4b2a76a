//! Clique: the members of a group meet here, once for each execution of their instruction.
#![expect(unsafe_code, reason = "executes jobs on the memory of members that wait for them")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result, ResultExt};

use super::group::Group;
use super::job::{Job, Member};
use super::waiting::{Phase, Wait, Waiting};
use crate::cancel::CancelToken;
use crate::collective::{CliqueKey, CollectiveCall, Communicator, InstructionKey, Timeouts};
use crate::forked;
use crate::workers::blocking;

/// Members of a group that meet in this process. If it is not the whole group, they communicate as one with the others.
#[derive(Debug)]
pub(in crate::collective) struct Clique<J: Job> {
    group: Group,
    timeouts: Timeouts,
    /// Values that the jobs share.
    context: J::Context,
    state: Mutex<State<J>>,
    /// Signalled when threads that sleep should look at the state.
    changed: Condvar,
    /// Number of signals, for threads that spin. `Relaxed`: it orders nothing, since they then read the state under its
    /// lock.
    signals: AtomicU64,
}

#[derive(Debug)]
struct State<J> {
    /// Number of collectives that are complete.
    completed: u64,
    /// Members that have arrived for the current collective, in the order of their ranks.
    members: Vec<Option<Member>>,
    /// Current collective, once all members have arrived.
    job: Option<Arc<J>>,
    /// Number of threads that execute tasks of the job. While there are any, no member leaves.
    active: usize,
    /// Number of threads that sleep.
    asleep: usize,
    /// Whether a warning about the current wait was written.
    is_warned: bool,
    /// Failure that ended the clique.
    failure: Option<Error>,
}

impl<J> State<J> {
    fn new(members: usize) -> State<J> {
        let members = empty(members);
        State { completed: 0, members, job: None, active: 0, asleep: 0, is_warned: false, failure: None }
    }
}

impl<J: Job> Clique<J> {
    pub fn new(group: Group, timeouts: Timeouts, context: J::Context) -> Clique<J> {
        let state = Mutex::new(State::new(group.ranks.len()));
        Clique { group, timeouts, context, state, changed: Condvar::new(), signals: AtomicU64::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has waiting threads look at the state.
    fn signal(&self, state: &State<J>) {
        self.signals.fetch_add(1, Ordering::Relaxed);
        if state.asleep > 0 {
            self.changed.notify_all();
        }
    }

    fn instruction(&self) -> &InstructionKey {
        self.group.key.instruction()
    }

    /// Checks a call. Returns the position among the local members.
    fn check(&self, rank: usize, call: &CollectiveCall<'_>) -> Result<usize> {
        forked::check()?;
        call.check()?;
        let (members, expected) = (call.spec.members(), self.group.key.members());
        self.group.slot(rank).filter(|_| members == expected).ok_or_else(|| {
            Error::internal(format!("rank {rank} of {members} members called a group of {expected} devices"))
        })
    }

    fn meet(&self, rank: usize, call: CollectiveCall<'_>) -> Result<()> {
        let slot = self.check(rank, &call).context(|| self.instruction())?;
        let cancel = call.cancel;
        let mut state = self.state();
        if let Some(error) = &state.failure {
            return Err(error.again());
        }
        if state.members[slot].is_some() || state.job.is_some() {
            return Err(Error::internal(format!(
                "rank {rank} arrived again at {} before the last collective was complete",
                self.instruction()
            )));
        }
        let number = state.completed;
        state.members[slot] = Some(Member::new(call));
        if state.members.iter().any(Option::is_none) {
            return self.wait(state, number, Waiting::new(&self.group, self.timeouts, cancel));
        }
        let members = std::mem::replace(&mut state.members, empty(self.group.ranks.len()));
        let job = J::new(&self.context, &self.group, number, members.into_iter().flatten().collect());
        let job = match job {
            Ok(job) => Arc::new(job),
            Err(error) => return Err(self.fail(&mut state, error.context(self.instruction()))),
        };
        state.job = Some(job.clone());
        if job.is_shared() {
            self.signal(&state);
        }
        let state = self.help(state, &job, cancel);
        // Other threads may still execute tasks.
        match self.outcome(&state, number) {
            Some(outcome) => outcome,
            None => self.wait(state, number, Waiting::new(&self.group, self.timeouts, cancel)),
        }
    }

    /// Executes tasks of the job. The last thread to return from it completes the collective.
    fn help<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<J>>,
        job: &J,
        cancel: &CancelToken,
    ) -> MutexGuard<'a, State<J>> {
        state.active += 1;
        drop(state);
        // SAFETY: all members have arrived, since there is a job. They return from `meet` only by `outcome`, which has
        // none while a thread is active, or with a failure of a collective that has no job.
        let result = unsafe { job.work(cancel) };
        let mut state = self.state();
        state.active -= 1;
        if let Err(error) = result {
            self.fail(&mut state, error.context(self.instruction()));
        }
        if state.active == 0 && state.job.is_some() {
            state.job = None;
            if state.failure.is_none() {
                state.completed += 1;
                state.is_warned = false;
            }
            self.signal(&state);
        }
        state
    }

    /// Returns the outcome of collective `number`; `None` while it is not complete.
    fn outcome(&self, state: &State<J>, number: u64) -> Option<Result<()>> {
        if state.completed > number {
            return Some(Ok(()));
        }
        let error = state.failure.as_ref().filter(|_| state.active == 0)?;
        Some(Err(error.again()))
    }

    /// Waits until collective `number` is complete, and executes tasks of it in the meantime.
    fn wait<'a>(&'a self, state: MutexGuard<'a, State<J>>, number: u64, waiting: Waiting<'_>) -> Result<()> {
        let signals = self.signals.load(Ordering::Relaxed);
        drop(state);
        waiting.spin(|| self.signals.load(Ordering::Relaxed) != signals);
        let state = self.state();
        match self.outcome(&state, number) {
            Some(outcome) => outcome,
            None => {
                drop(state);
                blocking(|| self.sleep(number, waiting))
            }
        }
    }

    fn sleep(&self, number: u64, waiting: Waiting<'_>) -> Result<()> {
        let mut state = self.state();
        loop {
            if let Some(outcome) = self.outcome(&state, number) {
                return outcome;
            }
            if let Some(job) = state.job.clone().filter(|job| job.has_tasks()) {
                state = self.help(state, &job, waiting.cancel());
                continue;
            }
            let phase = match (&state.failure, &state.job) {
                (Some(_), _) => Phase::Ending,
                (None, Some(_)) => Phase::Working,
                (None, None) => Phase::Gathering { is_warned: state.is_warned },
            };
            match waiting.next(phase, |rank| self.group.slot(rank).is_some_and(|slot| state.members[slot].is_some())) {
                Wait::For(time) => {
                    state.asleep += 1;
                    state = self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
                    state.asleep -= 1;
                }
                Wait::Warn(text) => {
                    state.is_warned = true;
                    // A subscriber may execute any code, also another collective.
                    drop(state);
                    tracing::warn!("{text}");
                    state = self.state();
                }
                Wait::Failed(error) => drop(self.fail(&mut state, error)),
            }
        }
    }

    /// Ends the clique after a panic of a member. Returns when no thread accesses the memory of members.
    fn leave(&self) {
        let mut state = self.state();
        self.fail(&mut state, Error::internal(format!("a member of {} panicked", self.instruction())));
        while state.active > 0 {
            state.asleep += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep -= 1;
        }
    }

    /// Records a failure, unless there is one already. Returns the error of all members.
    fn fail(&self, state: &mut State<J>, error: Error) -> Error {
        if let Some(first) = &state.failure {
            return first.again();
        }
        if let Some(job) = &state.job {
            job.stop();
        }
        let copy = error.again();
        state.failure = Some(error);
        self.signal(state);
        copy
    }
}

fn empty(members: usize) -> Vec<Option<Member>> {
    (0..members).map(|_| None).collect()
}

impl<J: Job> Communicator for Clique<J> {
    fn key(&self) -> &CliqueKey {
        &self.group.key
    }

    fn run(&self, rank: usize, call: CollectiveCall<'_>) -> Result<()> {
        // `AssertUnwindSafe`: a panic ends the clique.
        match catch_unwind(AssertUnwindSafe(|| self.meet(rank, call))) {
            Ok(result) => result.map_err(|error| self.fail(&mut self.state(), error)),
            Err(panic) => {
                self.leave();
                resume_unwind(panic)
            }
        }
    }

    fn abort(&self, error: &Error) {
        self.fail(&mut self.state(), error.again());
    }
}
