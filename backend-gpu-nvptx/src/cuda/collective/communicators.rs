//! Communicators of one clique: creation, calls, errors, abort.
#![expect(unsafe_code, reason = "NCCL is a C library")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use cudarc::driver::sys::CUstream;
use xla_hlo::{Error, Result};

use super::lock::lock;
use super::progress::Progress;
use crate::cuda::api::nccl::{self as api, ncclComm_t, ncclResult_t as Status, ncclUniqueId};
use crate::cuda::context::Context;
use crate::cuda::library::presence::NCCL;
use crate::program::collective::{NcclType, Step};

/// Oldest version that lets one thread abort and destroy the ranks of a process in sequence.
const OLDEST_VERSION: c_int = 21_400;

/// Environment variable that makes NCCL's calls return before they are done, if it is `0`.
const BLOCKING: &str = "NCCL_COMM_BLOCKING";

/// Communicators of the members of a clique, all of which belong to this process.
pub(crate) struct Communicators {
    contexts: Vec<Arc<Context>>,
    /// By rank; empty once they are aborted. Null if NCCL has not created them.
    handles: Mutex<Vec<Handle>>,
    /// Reason of the abort.
    aborted: OnceLock<Error>,
    /// Progress of work that was sent and that runs still wait for.
    work: Mutex<Vec<Weak<Progress>>>,
}

struct Handle(ncclComm_t);

// SAFETY: NCCL accepts calls with a communicator from any thread, one at a time; `handles` is locked around them.
unsafe impl Send for Handle {}

/// Step with its addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub step: Step,
    /// Address that is read; 0 if nothing is read.
    pub from: u64,
    /// Address that is written; 0 if nothing is written.
    pub to: u64,
}

/// Finds the library, checks its version and makes a first call, once. [`Error::FailedPrecondition`] states the version
/// that is needed.
pub(crate) fn find() -> Result<()> {
    static FOUND: OnceLock<Result<()>> = OnceLock::new();
    let check_version = || match NCCL.get().and_then(|_| version_number())? {
        version if version >= OLDEST_VERSION => check_use(),
        version => Err(Error::failed_precondition(format!(
            "NCCL {} is too old: version {} or newer is needed; {} is loaded",
            version_text(version),
            version_text(OLDEST_VERSION),
            NCCL.file()?
        ))),
    };
    FOUND.get_or_init(check_version).as_ref().copied().map_err(Error::again)
}

/// Checks that NCCL starts on this machine, with its driver, and that its calls block.
fn check_use() -> Result<()> {
    if std::env::var(BLOCKING).is_ok_and(|value| value.trim() == "0") {
        return Err(Error::failed_precondition(format!("{BLOCKING}=0 is not supported: NCCL's calls must block")));
    }
    unique_id().map(drop).map_err(|error| error.context("NCCL does not start"))
}

/// `ncclGetUniqueId`: returns the identity of a new clique. The first call starts NCCL.
fn unique_id() -> Result<ncclUniqueId> {
    let mut id = ncclUniqueId { internal: [0; 128] };
    // SAFETY: the pointer is to a live id.
    check("ncclGetUniqueId", unsafe { api::ncclGetUniqueId(&mut id) })?;
    Ok(id)
}

/// `ncclGetVersion`: returns the library's name and version.
pub(crate) fn version() -> Result<String> {
    find()?;
    Ok(format!("NCCL {}", version_text(version_number()?)))
}

fn version_number() -> Result<c_int> {
    let mut version = 0;
    // SAFETY: the pointer is to a live integer.
    check("ncclGetVersion", unsafe { api::ncclGetVersion(&mut version) })?;
    Ok(version)
}

/// Returns the text of a version number, which has another form before version 2.9.
fn version_text(version: c_int) -> String {
    let thousands = if version < 10_000 { 1000 } else { 10_000 };
    format!("{}.{}.{}", version / thousands, version % thousands / 100, version % 100)
}

impl Communicators {
    /// `ncclCommInitRank`: creates the communicators of these devices, by rank. NCCL refuses a device that has two
    /// ranks. If a rank fails, the others are aborted.
    pub fn new(contexts: Vec<Arc<Context>>) -> Result<Communicators> {
        let count = c_int::try_from(contexts.len()).map_err(|_| Error::invalid_argument("a clique is too large"))?;
        // NCCL would wait for the rank of a lost device.
        contexts.iter().try_for_each(|context| context.with(|| ()))?;
        let id = unique_id()?;
        let handles = Mutex::new(contexts.iter().map(|_| Handle(std::ptr::null_mut())).collect());
        let made = Communicators { contexts, handles, aborted: OnceLock::new(), work: Mutex::default() };
        match made.join(count, id) {
            Ok(()) => Ok(made),
            Err(error) => {
                made.abort(&error);
                Err(error)
            }
        }
    }

    /// Creates the communicators of all ranks as one group.
    fn join(&self, count: c_int, id: ncclUniqueId) -> Result<()> {
        let mut handles = self.handles();
        in_group(|| {
            for ((Handle(handle), context), rank) in handles.iter_mut().zip(&self.contexts).zip(0..) {
                // SAFETY: the pointer is to a handle that is locked until the group ends, and the context is current.
                let status = context.with(|| unsafe { api::ncclCommInitRank(handle, count, id, rank) })?;
                check("ncclCommInitRank", status)?;
            }
            Ok(())
        })
    }

    /// Adds work that was sent, for aborts.
    pub fn add_work(&self, work: &Arc<Progress>) {
        let mut all = lock(&self.work);
        all.retain(|work| work.strong_count() > 0);
        all.push(Arc::downgrade(work));
    }

    /// Sends the calls of all ranks to their streams, as one group.
    pub fn send(&self, calls: &[&[Call]], streams: &[CUstream]) -> Result<()> {
        let handles = self.handles();
        if handles.len() != calls.len() || streams.len() != calls.len() {
            return Err(self.failure().unwrap_or_else(|| Error::internal("a clique has members without a stream")));
        }
        in_group(|| {
            let members = handles.iter().zip(streams).zip(calls);
            members.into_iter().try_for_each(|((handle, stream), calls)| {
                calls.iter().try_for_each(|call| send(call, handle.0, *stream))
            })
        })
    }

    /// `ncclCommGetAsyncError`: returns the error of work that was sent, if NCCL has detected one.
    pub fn check_work(&self) -> Result<()> {
        for (rank, handle) in self.handles().iter().enumerate() {
            let mut found = Status::ncclSuccess;
            // SAFETY: the communicator is alive, and the pointer is to a live status.
            check("ncclCommGetAsyncError", unsafe { api::ncclCommGetAsyncError(handle.0, &mut found) })?;
            if found != Status::ncclInProgress {
                check("the work of NCCL", found).map_err(|error| error.context(format_args!("rank {rank}")))?;
            }
        }
        Ok(())
    }

    /// `ncclCommAbort`: ends the work of all ranks, and destroys the communicators. Returns when all ranks are aborted,
    /// also if another thread has begun it: until then, NCCL may write to the memory of any rank.
    pub fn abort(&self, why: &Error) {
        let mut handles = self.handles();
        if handles.is_empty() {
            return;
        }
        let work = std::mem::take(&mut *lock(&self.work));
        work.iter().filter_map(Weak::upgrade).for_each(|work| work.record_complete());
        self.aborted.get_or_init(|| why.again());
        for (handle, context) in created(&mut handles, &self.contexts) {
            // SAFETY: the communicator is alive, and is not used again. The other ranks wait for the call also if the
            // device is lost. An error leaves nothing to do.
            let _ = context.regardless(|| unsafe { api::ncclCommAbort(handle) });
        }
    }

    /// Returns the reason of the abort, once the clique was aborted.
    pub fn failure(&self) -> Option<Error> {
        self.aborted.get().map(Error::again)
    }

    fn handles(&self) -> MutexGuard<'_, Vec<Handle>> {
        lock(&self.handles)
    }
}

impl Drop for Communicators {
    /// `ncclCommDestroy`: all work is complete. `Work` keeps its clique alive, and a run drops it only after it has
    /// waited for its own ranks; for all ranks, if other members may not wait. Work without a record was aborted.
    fn drop(&mut self) {
        for (handle, context) in created(&mut self.handles(), &self.contexts) {
            // SAFETY: the communicator is alive, and is not used again. The other ranks wait for the call also if the
            // device is lost. An error leaves nothing to do.
            let _ = context.regardless(|| unsafe { api::ncclCommDestroy(handle) });
        }
    }
}

/// Takes the communicators that NCCL has created.
fn created<'a>(
    handles: &mut Vec<Handle>,
    contexts: &'a [Arc<Context>],
) -> impl Iterator<Item = (ncclComm_t, &'a Arc<Context>)> + use<'a> {
    let handles = std::mem::take(handles).into_iter().map(|Handle(handle)| handle);
    handles.zip(contexts).filter(|(handle, _)| !handle.is_null())
}

impl std::fmt::Debug for Communicators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Communicators({:?})", self.contexts)
    }
}

/// `ncclGroupStart`, `ncclGroupEnd`: makes calls whose work starts together. The group always ends; the error of `work`
/// takes precedence.
fn in_group(work: impl FnOnce() -> Result<()>) -> Result<()> {
    // SAFETY: no requirements.
    check("ncclGroupStart", unsafe { api::ncclGroupStart() })?;
    let worked = work();
    // SAFETY: a group was started in this thread.
    let ended = check("ncclGroupEnd", unsafe { api::ncclGroupEnd() });
    worked.and(ended)
}

fn send(call: &Call, comm: ncclComm_t, stream: CUstream) -> Result<()> {
    let from: *const c_void = std::ptr::without_provenance(call.from as usize);
    let to: *mut c_void = std::ptr::without_provenance_mut(call.to as usize);
    let byte = NcclType::U8 as u32;
    // SAFETY: communicator and stream are alive and of one device. The addresses are of memory of this device, of the
    // sizes that the plan of the collective has checked against the shapes of its arrays.
    unsafe {
        match call.step {
            Step::AllReduce { count, ty, op, .. } => {
                check("ncclAllReduce", api::ncclAllReduce(from, to, count, ty as u32, op as u32, comm, stream))
            }
            Step::ReduceScatter { count, ty, op, .. } => {
                check("ncclReduceScatter", api::ncclReduceScatter(from, to, count, ty as u32, op as u32, comm, stream))
            }
            Step::AllGather { bytes, .. } => {
                check("ncclAllGather", api::ncclAllGather(from, to, bytes, byte, comm, stream))
            }
            Step::Broadcast { bytes, root, .. } => {
                check("ncclBroadcast", api::ncclBroadcast(from, to, bytes, byte, root as c_int, comm, stream))
            }
            Step::Send { bytes, peer, .. } => {
                check("ncclSend", api::ncclSend(from, bytes, byte, peer as c_int, comm, stream))
            }
            Step::Receive { bytes, peer, .. } => {
                check("ncclRecv", api::ncclRecv(to, bytes, byte, peer as c_int, comm, stream))
            }
            Step::Copy { .. } | Step::Zero { .. } => Err(Error::internal("a copy is not work of NCCL")),
        }
    }
}

fn check(call: &str, status: Status) -> Result<()> {
    if status == Status::ncclSuccess {
        return Ok(());
    }
    // SAFETY: NCCL returns a constant text for every number.
    let text: *const c_char = unsafe { api::ncclGetErrorString(status) };
    let text = if text.is_null() {
        String::new()
    } else {
        // SAFETY: the text ends with a zero and lives as long as the library, which is never closed.
        format!(" ({})", unsafe { CStr::from_ptr(text) }.to_string_lossy())
    };
    Err(match status {
        Status::ncclInvalidUsage => Error::failed_precondition(format!("{call} failed: {status:?}{text}")),
        _ => Error::internal(format!("{call} failed: {status:?}{text}")),
    }
    .note("Set NCCL_DEBUG=WARN for NCCL's own messages."))
}

#[cfg(test)]
mod tests {
    use super::version_text;

    #[test]
    fn versions_have_two_forms() {
        assert_eq!([22_803, 21_000, 2804].map(version_text), ["2.28.3", "2.10.0", "2.8.4"]);
    }
}
