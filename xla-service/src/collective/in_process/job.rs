//! Job: a collective whose members have all arrived.
#![expect(unsafe_code, reason = "executes tasks on the memory of members that wait for them")]

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use xla_hlo::{Error, Result};

use super::group::Group;
use super::memory::{MemberMemory, Memory};
use super::plan::Plan;
use super::slices::check_slices;
use super::work::Work;
use crate::cancel::CancelToken;
use crate::collective::{CollectiveCall, CollectiveSpec, MemberArguments, Operation};
use crate::panics::panic_message;

/// A collective whose local members have all arrived.
pub(in crate::collective) trait Job: fmt::Debug + Send + Sync + Sized {
    /// Values that the jobs of a clique share.
    type Context: fmt::Debug + Send + Sync;

    /// Creates the job of collective `number` of a clique, from the local members in the order of their ranks. Fails if
    /// their calls do not fit together. Does not wait: the caller holds a lock.
    fn new(context: &Self::Context, group: &Group, number: u64, members: Vec<Member>) -> Result<Self>;

    /// Whether other threads should help.
    fn is_shared(&self) -> bool;

    /// Whether a task may be left to claim.
    fn has_tasks(&self) -> bool;

    /// Skips the remaining tasks, and ends the waits of tasks.
    fn stop(&self);

    /// Executes tasks until none is left, one fails, or the token is cancelled. A panic in a task is an error.
    ///
    /// # Safety
    ///
    /// All members of the job wait in the calls that they arrived with until this function has returned on all
    /// threads.
    unsafe fn work(&self, cancel: &CancelToken) -> Result<()>;
}

/// Arrival of a member.
#[derive(Debug)]
pub(in crate::collective) struct Member {
    pub spec: Arc<CollectiveSpec>,
    pub memory: MemberMemory,
    pub arguments: MemberArguments,
}

impl Member {
    pub fn new(call: CollectiveCall<'_>) -> Member {
        Member { spec: call.spec.clone(), memory: MemberMemory::of(&call), arguments: call.arguments }
    }
}

/// A collective whose members are all in this process, and its tasks.
#[derive(Debug)]
pub(in crate::collective) struct LocalJob {
    spec: Arc<CollectiveSpec>,
    arguments: Vec<MemberArguments>,
    memory: Memory,
    plan: Plan,
    /// Number of the next task that no thread has claimed.
    next: AtomicUsize,
    /// Whether the remaining tasks are skipped, because a task failed or the clique was aborted.
    is_stopped: AtomicBool,
}

impl Job for LocalJob {
    type Context = ();

    fn new((): &(), group: &Group, _: u64, members: Vec<Member>) -> Result<LocalJob> {
        let spec = common_spec(&members, group)?;
        let (memory, arguments): (_, Vec<MemberArguments>) =
            members.into_iter().map(|member| (member.memory, member.arguments)).unzip();
        check_arguments(&spec, &arguments)?;
        let plan = Plan::new(&spec);
        let memory = Memory::new(memory);
        Ok(LocalJob { spec, arguments, memory, plan, next: AtomicUsize::new(0), is_stopped: AtomicBool::new(false) })
    }

    fn is_shared(&self) -> bool {
        !self.plan.is_small && self.plan.tasks > 1
    }

    fn has_tasks(&self) -> bool {
        !self.is_stopped.load(Ordering::Relaxed) && self.next.load(Ordering::Relaxed) < self.plan.tasks
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    unsafe fn work(&self, cancel: &CancelToken) -> Result<()> {
        // SAFETY: all members wait, as the caller guarantees. Each task is claimed once, and tasks write different
        // bytes (`tasks.rs`). A task reads only bytes of operands that no task writes, except an operand at the place
        // of a result (`CollectiveCall::check`), which only the task that overwrites these elements reads.
        let access = unsafe { self.memory.access() };
        let work = Work { spec: &self.spec, arguments: &self.arguments, access };
        while !self.is_stopped.load(Ordering::Relaxed) {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((array, range)) = self.plan.task(task) else { break };
            let result = caught(|| cancel.check().and_then(|()| work.execute(array, range)));
            if result.is_err() {
                self.stop();
                return result;
            }
        }
        Ok(())
    }
}

/// Returns the spec of members, in the order of the group's local ranks. Fails if they differ.
pub(in crate::collective) fn common_spec(members: &[Member], group: &Group) -> Result<Arc<CollectiveSpec>> {
    let spec = members.first().map(|member| member.spec.clone());
    let spec = spec.ok_or_else(|| Error::internal("a collective has no members"))?;
    let is_other = |member: &Member| !Arc::ptr_eq(&member.spec, &spec) && member.spec != spec;
    let Some(slot) = members.iter().position(is_other) else { return Ok(spec) };
    let [first, other] = [0, slot].map(|slot| group.key.devices()[group.ranks[slot]]);
    Err(Error::invalid_argument(match members[slot].spec.differs_only_in_reducer(&spec) {
        true => format!("devices {first} and {other} have separate reducers: a group must share one"),
        false => format!("device {other} executes another collective than device {first}"),
    }))
}

/// Checks the arguments of all members of a collective.
pub(in crate::collective) fn check_arguments(spec: &CollectiveSpec, arguments: &[MemberArguments]) -> Result<()> {
    match spec.operation() {
        Operation::Broadcast | Operation::AllReduce(_) => check_root(arguments),
        Operation::PermuteSlices(pairs) => check_slices(spec, pairs, arguments),
        _ => Ok(()),
    }
}

/// Executes a task. A panic is an error.
pub(in crate::collective) fn caught(task: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(task)).unwrap_or_else(|panic| {
        let error = Error::internal(format!("a task of the collective panicked: {}", panic_message(&*panic)));
        // A destructor that panics here would leave the other members waiting.
        std::mem::forget(panic);
        Err(error)
    })
}

/// Checks that all members have selected the same root.
fn check_root(arguments: &[MemberArguments]) -> Result<()> {
    if arguments.iter().all(|other| *other == arguments[0]) {
        return Ok(());
    }
    let root = |arguments: &MemberArguments| match arguments {
        MemberArguments::Root(root) => Some(*root),
        MemberArguments::None | MemberArguments::Slices { .. } | MemberArguments::Rows(_) => None,
    };
    let roots: Vec<usize> = arguments.iter().filter_map(root).collect();
    Err(Error::invalid_argument(format!("the members of a group select different roots: {roots:?}")))
}
