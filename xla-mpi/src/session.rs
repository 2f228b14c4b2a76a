//! Initialised MPI of this process. It is finalised when the process exits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use xla_hlo::{Error, Result};

use crate::library::MpiLibrary;

/// Time to wait for `MPI_Finalize`, which waits for all processes, if one of them may be stuck.
const FINALIZE_IF_STUCK: Duration = Duration::from_secs(5);

/// MPI of this process, once it is initialised.
static SESSION: Mutex<Option<Arc<Session>>> = Mutex::new(None);

/// Process that has initialised MPI. A forked child inherits the memory, but neither the threads nor MPI.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Initialised MPI. One thread at a time calls it.
#[derive(Debug)]
pub(crate) struct Session {
    pub mpi: MpiLibrary,
    gate: Mutex<Gate>,
    /// Thread that has initialised MPI and will finalise it; `None` if another part of the process has.
    owner: Option<Mutex<Owner>>,
    /// Whether a process is lost or a wait for one has timed out. Others may never reach `MPI_Finalize`.
    pub is_stuck: AtomicBool,
}

/// Permission to call MPI.
#[derive(Debug)]
pub(crate) struct Gate {
    is_closed: bool,
}

#[derive(Debug)]
struct Owner {
    end: Sender<()>,
    ended: Receiver<Result<()>>,
}

impl Session {
    /// Returns the session of this process, and initialises MPI at the first call, which waits up to `timeout` for the
    /// other processes.
    pub fn get(timeout: Duration) -> Result<Arc<Session>> {
        let mut session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return match is_own_process() {
                true => Ok(session.clone()),
                false => Err(Error::failed_precondition("MPI was initialised before this process was forked")),
            };
        }
        let mpi = MpiLibrary::load()?;
        let (is_initialized, is_finalized) = mpi.phase()?;
        let new = match (is_initialized, is_finalized) {
            (_, true) => return Err(Error::failed_precondition("MPI was finalised already")),
            (true, false) => Session::shared(mpi)?,
            (false, false) => Session::own(mpi, timeout)?,
        };
        Ok(session.insert(new).clone())
    }

    /// Uses an MPI that another part of the process has initialised.
    fn shared(mpi: MpiLibrary) -> Result<Arc<Session>> {
        let level = mpi.thread_level()?;
        if level < mpi.constants.multiple {
            return Err(Error::failed_precondition(format!(
                "MPI was initialised with thread level {level}, and collectives call it from other threads"
            ))
            .note("initialise MPI with MPI_THREAD_MULTIPLE"));
        }
        Ok(Session::new(mpi, None))
    }

    /// Initialises MPI on a thread, which finalises it when the process exits.
    fn own(mpi: MpiLibrary, timeout: Duration) -> Result<Arc<Session>> {
        let ((end, end_receiver), (ended_sender, ended)) = (channel(), channel());
        let (started, start) = channel();
        let work = move || {
            let level = mpi.init();
            let required = mpi.constants.serialized;
            let session = level.and_then(|level| match level >= required {
                true => Ok(Session::new(mpi, Some(Owner { end, ended }))),
                false => Err(Error::failed_precondition(format!(
                    "MPI supports only thread level {level}, and collectives call it from several threads"
                ))),
            });
            let own = session.as_ref().ok().cloned();
            if started.send(session).is_err() {
                return;
            }
            // The session never ends, so this waits for `at_exit`.
            if let (Some(session), Ok(())) = (own, end_receiver.recv()) {
                let _ = ended_sender.send(session.mpi.finalize());
            }
        };
        let builder = thread::Builder::new().name("xla-mpi-init".into());
        builder.spawn(work).map_err(|error| Error::resource_exhausted(format!("cannot start a thread: {error}")))?;
        let session = start.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                Error::failed_precondition(format!("after {timeout:.1?}, MPI_Init_thread has not returned"))
                    .note("another process of the job is stuck or has failed earlier")
            }
            RecvTimeoutError::Disconnected => Error::internal("the thread that initialises MPI has panicked"),
        })??;
        exit::register()?;
        Ok(session)
    }

    fn new(mpi: MpiLibrary, owner: Option<Owner>) -> Arc<Session> {
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        let gate = Mutex::new(Gate { is_closed: false });
        Arc::new(Session { mpi, gate, owner: owner.map(Mutex::new), is_stuck: AtomicBool::new(false) })
    }

    /// Waits for permission to call MPI. `None` after its end.
    pub fn lock(&self) -> Option<MutexGuard<'_, Gate>> {
        self.if_open(self.gate.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns permission to call MPI if no other thread has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Gate>> {
        let gate = match self.gate.try_lock() {
            Ok(gate) => gate,
            Err(TryLockError::Poisoned(gate)) => gate.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.if_open(gate)
    }

    /// Closes the gate if the part of the process that has initialised MPI has finalised it.
    fn if_open<'a>(&self, mut gate: MutexGuard<'a, Gate>) -> Option<MutexGuard<'a, Gate>> {
        if self.owner.is_none() && !gate.is_closed {
            gate.is_closed = !matches!(self.mpi.phase(), Ok((_, false)));
        }
        Some(gate).filter(|gate| !gate.is_closed)
    }
}

/// Whether this process has initialised MPI, and is not a forked child of that process.
pub(crate) fn is_own_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == std::process::id()
}

/// Finalises MPI if this crate has initialised it. If a process may be stuck, it waits only for a limited time; the
/// process then exits without `MPI_Finalize`, and its launcher ends the others.
fn at_exit() {
    if !is_own_process() {
        return;
    }
    let session = SESSION.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some((session, owner)) = session.as_ref().and_then(|session| Some((session, session.owner.as_ref()?))) else {
        return;
    };
    session.gate.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
    let owner = owner.lock().unwrap_or_else(PoisonError::into_inner);
    if owner.end.send(()).is_ok() {
        let _ = match session.is_stuck.load(Ordering::Relaxed) {
            true => owner.ended.recv_timeout(FINALIZE_IF_STUCK).ok(),
            false => owner.ended.recv().ok(),
        };
    }
}

/// Registration with the C library.
mod exit {
    #![expect(unsafe_code, reason = "calls the C library")]

    use xla_hlo::{Error, Result};

    extern "C" fn handler() {
        // A panic must not leave a function that C calls.
        let _ = std::panic::catch_unwind(super::at_exit);
    }

    /// Has the C library call [`super::at_exit`] when the process exits or this library is unloaded.
    pub(super) fn register() -> Result<()> {
        // SAFETY: the handler is a function of this library, which the C library calls before it unloads it.
        match unsafe { libc::atexit(handler) } {
            0 => Ok(()),
            _ => Err(Error::resource_exhausted("cannot register a handler for the exit of the process: out of memory")),
        }
    }
}
