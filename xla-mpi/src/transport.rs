//! The transport: sends from any thread, and a thread that makes progress while none waits.

use std::mem::take;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};
use xla_service::collective::processes::{Inbox, Message, Progress, Transport};

use crate::endpoint::{Endpoint, Event};
use crate::session::{Session, is_own_process};
use crate::wire::Hello;

/// Polling interval of the transport's thread if nothing is pending.
const IDLE_POLL: Duration = Duration::from_millis(1);

/// Polling interval of the transport's thread while messages are pending.
const BUSY_POLL: Duration = Duration::from_micros(50);

/// Longest time that the end of a transport waits for sends.
const LAST_SENDS: Duration = Duration::from_secs(5);

/// Transport of collectives by MPI. All processes of the job take part.
///
/// The first one loads and initialises MPI, which is finalised when the process exits. If another part of the process
/// has initialised MPI before, for example mpi4py, that needs the level `MPI_THREAD_MULTIPLE`.
#[derive(Debug)]
pub struct Mpi {
    shared: Arc<Shared>,
    /// Thread that makes progress until the end of the transport.
    thread: Option<JoinHandle<()>>,
}

/// State of the transport and its thread.
#[derive(Debug)]
struct Shared {
    session: Arc<Session>,
    rank: usize,
    size: usize,
    endpoint: Mutex<Endpoint>,
    inbox: Mutex<Receiver>,
    has_ended: AtomicBool,
}

/// Receiver of messages, and messages until there is one.
#[derive(Default)]
struct Receiver {
    inbox: Option<Arc<dyn Inbox>>,
    early: Vec<Event>,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, {} early messages", self.inbox, self.early.len())
    }
}

impl Mpi {
    /// Creates the transport of this process for a client of a platform, together with all others: they wait for each
    /// other up to `timeout`. MPI pairs the transports of the processes in the order of their creation, so all
    /// processes create the transports of several platforms in one order.
    ///
    /// Fails if MPI cannot be loaded or initialised, if the job has another number of processes than `size`, or if
    /// another process creates a transport for another platform.
    pub fn new(platform: &str, size: usize, timeout: Duration) -> Result<Arc<Mpi>> {
        let session = Session::get(timeout)?;
        // After a failure, other processes may never reach `MPI_Finalize`.
        let create = Mpi::create(session.clone(), platform, size, timeout);
        create.inspect_err(|_| session.is_stuck.store(true, Ordering::Relaxed))
    }

    fn create(session: Arc<Session>, platform: &str, size: usize, timeout: Duration) -> Result<Arc<Mpi>> {
        let start = Instant::now();
        let (rank, mpi_size) = {
            let _gate = session.lock().ok_or_else(ended)?;
            session.mpi.return_errors(session.mpi.constants.world)?;
            session.mpi.rank_and_size(session.mpi.constants.world)?
        };
        if mpi_size != size {
            return Err(Error::failed_precondition(format!(
                "MPI ({}) has {mpi_size} processes, expected {size}",
                session.mpi.path.display()
            ))
            .note(format!("start the program with the mpiexec of this library: mpiexec -n {size} PROGRAM")));
        }
        let comm = duplicate(&session, timeout)?;
        let mut endpoint = Endpoint::new(comm, size);
        {
            let _gate = session.lock().ok_or_else(ended)?;
            session.mpi.return_errors(comm)?;
            endpoint.introduce(
                &session.mpi,
                rank,
                Hello { location: own_location(), platform: platform.to_string() },
            )?;
        }
        let (endpoint, inbox) = (Mutex::new(endpoint), Mutex::default());
        let shared = Arc::new(Shared { session, rank, size, endpoint, inbox, has_ended: AtomicBool::new(false) });
        shared.meet(timeout.saturating_sub(start.elapsed()))?;
        let own = shared.clone();
        let builder = thread::Builder::new().name("xla-mpi-progress".into());
        let thread = builder
            .spawn(move || own.make_progress())
            .map_err(|error| Error::resource_exhausted(format!("cannot start a thread: {error}")))?;
        Ok(Arc::new(Mpi { shared, thread: Some(thread) }))
    }
}

impl Shared {
    fn endpoint(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        if events.iter().any(|event| matches!(event, Event::Lost(..))) {
            self.session.is_stuck.store(true, Ordering::Relaxed);
        }
        let mut receiver = self.receiver();
        match receiver.inbox.clone() {
            None => receiver.early.extend(events),
            Some(inbox) => {
                drop(receiver);
                events.into_iter().for_each(|event| pass(&*inbox, event));
            }
        }
    }

    /// Waits for the introductions of all processes, and checks that their transports are for one platform.
    fn meet(&self, timeout: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            self.poll();
            let missing = {
                let endpoint = self.endpoint();
                let missing = endpoint.missing();
                if missing.is_none() && !endpoint.has_sends() {
                    return endpoint.check_platforms(self.rank);
                }
                missing
            };
            if start.elapsed() > timeout || self.session.lock().is_none() {
                let process = missing.map_or_else(|| "a process".to_string(), |rank| format!("process {rank}"));
                let message = format!("{process} of the MPI job has not introduced itself in time");
                return Err(Error::failed_precondition(message).note("a process is stuck or has failed earlier"));
            }
            thread::sleep(BUSY_POLL);
        }
    }

    fn poll(&self) -> Progress {
        let mut events = vec![];
        let has_progress = match self.session.try_lock() {
            Some(_gate) => self.endpoint().progress(&self.session.mpi, &mut events),
            None => false,
        };
        self.deliver(events);
        if has_progress { Progress::Made } else { Progress::Idle }
    }

    /// Polls until the transport has ended.
    fn make_progress(&self) {
        while !self.has_ended.load(Ordering::Relaxed) {
            let has_progress = self.poll() == Progress::Made;
            let is_busy = self.endpoint().is_busy();
            if !has_progress {
                thread::sleep(if is_busy { BUSY_POLL } else { IDLE_POLL });
            }
        }
    }
}

fn pass(inbox: &dyn Inbox, event: Event) {
    match event {
        Event::Message(from, id, bytes) => inbox.receive(from, id, bytes),
        Event::Lost(rank, error) => inbox.lost(rank, error),
    }
}

fn ended() -> Error {
    Error::failed_precondition("the process exits: MPI has ended")
}

/// Duplicates the world. Waits until all processes do so.
fn duplicate(session: &Session, timeout: Duration) -> Result<usize> {
    let start = Instant::now();
    // Leaked if the other processes do not arrive: MPI may store the communicator later.
    let comm: &AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
    let mut request = {
        let _gate = session.lock().ok_or_else(ended)?;
        session.mpi.begin_duplicate(comm)?
    };
    loop {
        let is_complete = {
            let _gate = session.lock().ok_or_else(ended)?;
            session.mpi.test(&mut request)?
        };
        if is_complete {
            return Ok(comm.load(Ordering::Relaxed));
        }
        if start.elapsed() > timeout {
            let message =
                format!("after {timeout:.1?}, some processes of the MPI job have not created their transport");
            return Err(Error::failed_precondition(message).note("a process is stuck or has failed earlier"));
        }
        thread::sleep(BUSY_POLL);
    }
}

/// Returns process id and host of this process.
fn own_location() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let host = host.map(|host| host.trim().to_string()).filter(|host| !host.is_empty());
    format!("pid {} on {}", std::process::id(), host.as_deref().unwrap_or("an unknown host"))
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        self.shared.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn location(&self, rank: usize) -> String {
        self.shared.endpoint().location(rank).unwrap_or("on an unknown host").to_string()
    }

    fn connect(&self, inbox: Arc<dyn Inbox>) -> Result<()> {
        let mut receiver = self.shared.receiver();
        if receiver.inbox.is_some() {
            return Err(Error::failed_precondition("a transport has two engines"));
        }
        receiver.inbox = Some(inbox.clone());
        let early = take(&mut receiver.early);
        drop(receiver);
        early.into_iter().for_each(|event| pass(&*inbox, event));
        Ok(())
    }

    fn send(&self, to: usize, message: Message) -> Result<()> {
        if to >= self.shared.size {
            return Err(Error::internal(format!("there is no process {to}")));
        }
        let _gate = self.shared.session.lock().ok_or_else(ended)?;
        self.shared.endpoint().send(&self.shared.session.mpi, to, &message)
    }

    fn poll(&self) -> Progress {
        self.shared.poll()
    }

    fn timed_out(&self) {
        self.shared.session.is_stuck.store(true, Ordering::Relaxed);
    }
}

impl Drop for Mpi {
    /// Waits for sends up to `LAST_SENDS`, then ends the thread. A method of the inbox that runs on this thread may
    /// drop the transport.
    fn drop(&mut self) {
        if !is_own_process() {
            return;
        }
        let (shared, start) = (&self.shared, Instant::now());
        while shared.endpoint().has_sends() && start.elapsed() < LAST_SENDS && shared.session.lock().is_some() {
            shared.poll();
            thread::sleep(BUSY_POLL);
        }
        shared.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take().filter(|own| own.thread().id() != thread::current().id()) {
            // A panic of the thread has been reported.
            let _ = thread.join();
        }
    }
}
