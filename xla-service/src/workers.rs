//! Worker threads of a client, and scopes that say when a thread waits or runs code of others.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use xla_hlo::out_of_memory::ensure_thread_room;

use crate::forked::is_forked;

/// Time that a thread without work waits for some before it ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads that may [wait](blocking) or [run code of others](host_call) at a time before further jobs are held back.
const CALLS: usize = 32;

/// Time that held-back jobs wait for one of [`CALLS`] threads to come back, before one more thread may start. Each such
/// thread makes it longer by as much: the threads may wait for a job that is held back, or just take long.
const STALL: Duration = Duration::from_millis(5);

/// Stack of a thread: that of a C program's, since handlers of custom calls run on it. OpenBLAS takes more than two
/// megabytes for a factorisation.
const STACK_BYTES: usize = 8 << 20;

/// A job. It must not panic: it catches panics of its callees.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Threads that run jobs in the order they came, at most a fixed number at a time.
///
/// A thread that [waits](blocking) or [runs code of others](host_call) is away: another one takes its place. At most
/// [`CALLS`] threads are away at a time, and one more each time that none of them has come back for [`STALL`]. So the
/// number of threads is bounded where calls end, and jobs never wait forever for threads that wait for them.
#[derive(Debug)]
pub(crate) struct Workers(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    name: String,
    /// Jobs at a time.
    limit: usize,
    state: Mutex<State>,
    /// Told when there is a job or no job will come any more.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Threads waiting for `changed`.
    idle: usize,
    /// Threads that have not looked for a job yet.
    starting: usize,
    /// Threads with a job, those that wait in it or run code of others aside.
    busy: usize,
    /// Threads that wait in their job or run code of others.
    away: usize,
    /// Threads that may be away beyond [`CALLS`].
    extra: usize,
    /// Start of the time in which jobs have been held back and no thread has come back.
    stalled: Option<Instant>,
    closed: bool,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let State { jobs, idle, starting: _, busy, away, extra, stalled: _, closed, threads } = self;
        let (jobs, threads) = (jobs.len(), threads.len());
        write!(f, "{jobs} jobs, {threads} threads, {idle} idle, {busy} busy, {away} away, {extra} extra, ")?;
        write!(f, "closed: {closed}")
    }
}

thread_local! {
    /// The pool whose worker this thread is.
    static POOL: RefCell<Option<Arc<Pool>>> = const { RefCell::new(None) };
    /// Whether this thread's place in its pool is somebody else's.
    static IS_AWAY: Cell<bool> = const { Cell::new(false) };
    /// Host calls that this thread is inside of.
    static HOST_CALLS: Cell<usize> = const { Cell::new(0) };
}

impl Workers {
    /// Workers without a thread yet: threads start when there is work for them.
    pub fn new(name: impl Into<String>, limit: usize) -> Workers {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Workers(Arc::new(Pool { name: name.into(), limit: limit.max(1), state, changed }))
    }

    /// Has a job run by some thread. If the system has no thread left, or this process was forked and has none, the
    /// calling one runs it.
    pub fn spawn(&self, job: Job) {
        if is_forked() {
            return job();
        }
        let mut state = self.0.state();
        state.jobs.push_back(job);
        let state = self.0.staff(state);
        if state.threads.is_empty() {
            drop(state);
            self.0.run_one();
        }
    }
}

impl Drop for Workers {
    /// Waits until all jobs are done, unless this is one of the threads that do them.
    fn drop(&mut self) {
        if is_forked() {
            return;
        }
        self.0.state().closed = true;
        self.0.changed.notify_all();
        let is_worker = POOL.with_borrow(|pool| pool.as_ref().is_some_and(|pool| Arc::ptr_eq(pool, &self.0)));
        if is_worker {
            return;
        }
        // Threads that wait in their jobs may still start others for what is left to do.
        loop {
            let threads = std::mem::take(&mut self.0.state().threads);
            if threads.is_empty() {
                return;
            }
            // A job that panicked after all has been reported by the panic hook; there is nobody left to tell.
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }
}

impl Pool {
    /// Wakes or starts a thread for a waiting job, where one more may run.
    fn staff<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        // A thread that starts looks for others when it has a job.
        if state.jobs.is_empty() || state.busy >= self.limit || state.starting > 0 {
            return state;
        }
        if state.idle > 0 {
            self.changed.notify_one();
            return state;
        }
        let pool = self.clone();
        state.threads.retain(|thread| !thread.is_finished());
        let thread = thread::Builder::new().name(format!("xla-{}", self.name)).stack_size(STACK_BYTES);
        if ensure_thread_room().is_ok()
            && let Ok(spawned) = thread.spawn(move || pool.work())
        {
            state.threads.push(spawned);
            state.starting += 1;
        }
        state
    }

    /// The life of a thread.
    fn work(self: Arc<Self>) {
        POOL.set(Some(self.clone()));
        let mut state = self.state();
        state.starting -= 1;
        loop {
            if state.busy < self.limit
                && !state.is_held_back()
                && let Some(job) = state.jobs.pop_front()
            {
                state.busy += 1;
                let state_during = self.staff(state);
                drop(state_during);
                job();
                state = self.state();
                state.busy -= 1;
                continue;
            }
            if state.closed && state.jobs.is_empty() {
                return;
            }
            let patience = if state.busy < self.limit { state.stall() } else { None };
            if patience.is_some_and(|patience| patience.is_zero()) {
                (state.extra, state.stalled) = (state.extra + 1, None);
                continue;
            }
            state.idle += 1;
            let waited = self.changed.wait_timeout(state, patience.unwrap_or(PATIENCE));
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                return;
            }
        }
    }

    /// Runs the next job on the calling thread.
    fn run_one(&self) {
        let job = self.state().jobs.pop_front();
        job.into_iter().for_each(|job| job());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether jobs wait for threads that are away.
    fn is_held_back(&self) -> bool {
        self.away >= CALLS + self.extra
    }

    /// Time after which one more thread may be away; `None` where no job is held back.
    fn stall(&mut self) -> Option<Duration> {
        if self.jobs.is_empty() || !self.is_held_back() {
            self.stalled = None;
            return None;
        }
        let since = *self.stalled.get_or_insert_with(Instant::now);
        let patience = STALL.saturating_mul(u32::try_from(self.extra + 1).unwrap_or(u32::MAX));
        Some(patience.saturating_sub(since.elapsed()))
    }

    /// Notes that a thread has come back.
    fn came_back(&mut self) {
        self.away -= 1;
        self.extra = self.extra.min(self.away.saturating_sub(CALLS));
        self.stalled = None;
    }
}

/// Runs something that may wait for other jobs; a worker's place is somebody else's meanwhile.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    /// Takes the place again, even when the work panics.
    struct Absent(Arc<Pool>);
    impl Drop for Absent {
        fn drop(&mut self) {
            let mut state = self.0.state();
            state.busy += 1;
            state.came_back();
            // A job that was held back may start on another thread.
            drop(self.0.staff(state));
            IS_AWAY.set(false);
        }
    }
    if IS_AWAY.get() {
        return work();
    }
    let _absent = POOL.with_borrow(Clone::clone).map(|pool| {
        IS_AWAY.set(true);
        let mut state = pool.state();
        (state.busy, state.away) = (state.busy - 1, state.away + 1);
        drop(pool.staff(state));
        Absent(pool)
    });
    work()
}

/// Runs code of others: a handler of a custom call, a callback, a deleter. It may run programs itself, and wait for
/// other threads that do; programs that it runs are run on its own thread.
pub(crate) fn host_call<T>(work: impl FnOnce() -> T) -> T {
    /// Counts the call out, even when the work panics.
    struct Inside;
    impl Drop for Inside {
        fn drop(&mut self) {
            HOST_CALLS.set(HOST_CALLS.get() - 1);
        }
    }
    let outermost = HOST_CALLS.replace(HOST_CALLS.get() + 1) == 0;
    let _inside = Inside;
    if outermost { blocking(work) } else { work() }
}

/// Whether the calling thread is inside of a [`host_call`].
pub(crate) fn is_host_call() -> bool {
    HOST_CALLS.get() > 0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};

    use super::*;

    #[test]
    fn jobs_run_at_most_so_many_at_a_time_and_all_are_done_at_the_end() {
        let workers = Workers::new("test", 3);
        let counts = Arc::new([const { AtomicUsize::new(0) }; 3]);
        for _ in 0..200 {
            let counts = counts.clone();
            workers.spawn(Box::new(move || {
                let [now, most, done] = &*counts;
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
            }));
        }
        drop(workers);
        let [now, most, done] = &*counts;
        assert_eq!((now.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (0, 200));
        assert!(most.load(Ordering::SeqCst) <= 3);
    }

    /// Each job waits for all others, in nested scopes: each needs a thread of its own, though one may run at a time.
    #[test]
    fn those_that_wait_or_run_code_of_others_give_their_place_to_somebody() {
        for nested in [false, true] {
            let workers = Workers::new("test", 1);
            let (barrier, count) = (Arc::new(Barrier::new(8)), Arc::new(AtomicUsize::new(0)));
            for _ in 0..8 {
                let (barrier, count) = (barrier.clone(), count.clone());
                workers.spawn(Box::new(move || {
                    assert!(!is_host_call());
                    if nested {
                        host_call(|| {
                            assert!(is_host_call());
                            host_call(|| blocking(|| barrier.wait()));
                        });
                    } else {
                        blocking(|| barrier.wait());
                    }
                    assert!(!is_host_call());
                    count.fetch_add(1, Ordering::SeqCst);
                }));
            }
            drop(workers);
            assert_eq!(count.load(Ordering::SeqCst), 8);
        }
    }

    /// The most threads of a pool at a time while each of 300 jobs runs code of others for some time.
    #[test]
    fn calls_in_flight_have_a_bounded_number_of_threads() {
        let workers = Workers::new("test", 2);
        let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let pool = workers.0.clone();
        for _ in 0..300 {
            let (counts, pool) = (counts.clone(), pool.clone());
            workers.spawn(Box::new(move || {
                host_call(|| {
                    let [most, done] = &*counts;
                    thread::sleep(Duration::from_millis(10));
                    let threads = pool.state().threads.iter().filter(|thread| !thread.is_finished()).count();
                    most.fetch_max(threads, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }));
        }
        let (most, done) = (&counts[0], &counts[1]);
        while done.load(Ordering::SeqCst) < 300 {
            thread::yield_now();
        }
        drop(workers);
        // Those beyond start while others are slow to come back, one by one.
        let most = most.load(Ordering::SeqCst);
        assert!((CALLS..=2 * CALLS).contains(&most), "{most}");
        let state = pool.state();
        assert_eq!((state.away, state.busy, state.extra), (0, 0, 0));
    }

    /// Each of more jobs than may be away waits, unknown to the pool, for the last one.
    #[test]
    fn calls_that_wait_for_jobs_held_back_end() {
        let count = CALLS + 8;
        let workers = Workers::new("test", 2);
        let barrier = Arc::new(Barrier::new(count));
        for _ in 0..count {
            let barrier = barrier.clone();
            workers.spawn(Box::new(move || {
                host_call(|| barrier.wait());
            }));
        }
        drop(workers);
        assert_eq!(Arc::strong_count(&barrier), 1);
    }

    #[test]
    fn the_last_handle_may_go_with_a_job() {
        let workers = Arc::new(Workers::new("test", 1));
        let (sender, receiver) = mpsc::channel();
        let (own, wait) = (workers.clone(), Arc::new(Barrier::new(2)));
        let other = wait.clone();
        workers.spawn(Box::new(move || {
            other.wait();
            drop(own);
            sender.send(()).unwrap();
        }));
        drop(workers);
        wait.wait();
        receiver.recv().unwrap();
    }
}
