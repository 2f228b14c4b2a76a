//! Worker threads of a client, and scopes that mark when a thread waits or runs user code.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use xla_hlo::out_of_memory::ensure_thread_room;

use crate::forked::is_forked;

/// Maximum time that a thread stays idle before it ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// Minimum number of threads that may [wait](blocking) or [run user code](host_call) at a time before further jobs are
/// held back. A larger pool permits one for each device, since the runs of a launch wait for each other.
const CALLS: usize = 32;

/// Waiting time of jobs that are held back: if none of the [`CALLS`] absent threads returns within it, one more thread
/// may start. The time grows by this amount with each additional thread. The absent threads may be waiting for a job
/// that is held back, or may just be slow.
const STALL: Duration = Duration::from_millis(5);

/// Stack size of a thread, the same as that of a C program, because handlers of custom calls run on it. OpenBLAS uses
/// more than two megabytes for a factorisation.
const STACK_BYTES: usize = 8 << 20;

/// Job of a worker. It must not panic: it catches panics of its callees.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Thread pool that runs jobs in FIFO order, at most a fixed number at a time.
///
/// A thread that [waits](blocking) or [runs user code](host_call) is absent: another thread may run jobs instead. At
/// most [`CALLS`] threads are absent at a time, plus one for each period of [`STALL`] in which none of them returns.
/// Therefore the number of threads is bounded as long as calls end, and jobs never wait forever for threads that wait
/// for them.
#[derive(Debug)]
pub(crate) struct Workers(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    name: String,
    /// Maximum number of running jobs.
    limit: usize,
    state: Mutex<State>,
    /// Signalled when a job is added or the pool is closed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Number of threads waiting for `changed`.
    idle: usize,
    /// Number of threads that have started but not looked for a job yet.
    starting: usize,
    /// Number of threads that run a job, excluding absent ones.
    busy: usize,
    /// Number of threads that wait in their job or run user code.
    away: usize,
    /// Number of threads that may be absent before jobs are held back.
    calls: usize,
    /// Number of threads that may be absent in addition to `calls`.
    extra: usize,
    /// Start of the current stall: since then jobs have been held back and no absent thread has returned.
    stalled: Option<Instant>,
    closed: bool,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let State { jobs, idle, starting: _, busy, away, calls: _, extra, stalled: _, closed, threads } = self;
        let (jobs, threads) = (jobs.len(), threads.len());
        write!(f, "{jobs} jobs, {threads} threads, {idle} idle, {busy} busy, {away} away, {extra} extra, ")?;
        write!(f, "closed: {closed}")
    }
}

thread_local! {
    /// Pool that this worker thread belongs to.
    static POOL: RefCell<Option<Arc<Pool>>> = const { RefCell::new(None) };
    /// Whether this thread is absent, so that another thread may run jobs in its place.
    static IS_AWAY: Cell<bool> = const { Cell::new(false) };
    /// Nesting depth of host calls on this thread.
    static HOST_CALLS: Cell<usize> = const { Cell::new(0) };
}

impl Workers {
    /// Creates a pool without threads: threads start on demand.
    pub fn new(name: impl Into<String>, limit: usize) -> Workers {
        let state = Mutex::new(State { calls: CALLS.max(limit), ..State::default() });
        Workers(Arc::new(Pool { name: name.into(), limit: limit.max(1), state, changed: Condvar::new() }))
    }

    /// Runs a job on a worker thread, or on the calling thread in a forked child or if no thread can be started.
    pub fn spawn(&self, job: Job) {
        self.spawn_all([job]);
    }

    /// Runs jobs that may wait for each other, as [`Workers::spawn`] does. All of them start before any later job.
    pub fn spawn_all(&self, jobs: impl IntoIterator<Item = Job>) {
        if is_forked() {
            return jobs.into_iter().for_each(|job| job());
        }
        let mut state = self.0.state();
        state.jobs.extend(jobs);
        let state = self.0.staff(state);
        if state.threads.is_empty() {
            drop(state);
            while self.0.run_one() {}
        }
    }
}

impl Drop for Workers {
    /// Waits until all jobs are done, unless the current thread is one of the workers.
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
        // Threads that wait in their jobs may still start others for the remaining jobs.
        loop {
            let threads = std::mem::take(&mut self.0.state().threads);
            if threads.is_empty() {
                return;
            }
            // If a job panicked nevertheless, the panic hook has reported it.
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }
}

impl Pool {
    /// Wakes or starts a thread for a pending job if the limits permit it.
    fn staff<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        // At most one thread starts at a time; it calls `staff` again when it has a job.
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

    /// Main loop of a worker thread.
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

    /// Runs the next job on the calling thread. Returns whether there was one.
    fn run_one(&self) -> bool {
        let job = self.state().jobs.pop_front();
        job.map(|job| job()).is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether jobs are held back because too many threads are absent.
    fn is_held_back(&self) -> bool {
        self.away >= self.calls + self.extra
    }

    /// Returns the time after which one more thread may be absent; `None` if no job is held back.
    fn stall(&mut self) -> Option<Duration> {
        if self.jobs.is_empty() || !self.is_held_back() {
            self.stalled = None;
            return None;
        }
        let since = *self.stalled.get_or_insert_with(Instant::now);
        let patience = STALL.saturating_mul(u32::try_from(self.extra + 1).unwrap_or(u32::MAX));
        Some(patience.saturating_sub(since.elapsed()))
    }

    /// Records that an absent thread has returned.
    fn came_back(&mut self) {
        self.away -= 1;
        self.extra = self.extra.min(self.away.saturating_sub(self.calls));
        self.stalled = None;
    }
}

/// Runs work that may wait for other jobs. A worker thread counts as absent in the meantime.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    /// Guard that ends the absence, even if the work panics.
    struct Absent(Arc<Pool>);
    impl Drop for Absent {
        fn drop(&mut self) {
            let mut state = self.0.state();
            state.busy += 1;
            state.came_back();
            // A job that was held back may now start on another thread.
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

/// Runs user code: a handler of a custom call, a callback, a deleter. It may run programs, and wait for other threads
/// that do; programs that it runs execute on its own thread.
pub(crate) fn host_call<T>(work: impl FnOnce() -> T) -> T {
    /// Guard that leaves the call, even if the work panics.
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

/// Whether the calling thread is inside a [`host_call`].
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

    /// Each job waits for all others, in nested scopes. Each needs its own thread, although only one may run at a time.
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

    /// Measures the peak number of threads of a pool while each of 300 jobs runs user code for some time.
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
        // Threads beyond `CALLS` start one at a time while others are slow to return.
        let most = most.load(Ordering::SeqCst);
        assert!((CALLS..=2 * CALLS).contains(&most), "{most}");
        let state = pool.state();
        assert_eq!((state.away, state.busy, state.extra), (0, 0, 0));
    }

    /// Each job waits, invisibly to the pool, for the last one; there are more jobs than may be absent.
    #[test]
    fn calls_that_wait_for_jobs_held_back_end() {
        let (count, workers) = (CALLS + 8, Workers::new("test", 2));
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
