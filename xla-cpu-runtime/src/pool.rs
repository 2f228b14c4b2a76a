//! Parallel loops. The caller takes part in the work and never waits for a helper that has not started.
//!
//! Helpers are tasks of a [`rayon`] pool: that of the process, or one of the embedding application. Rayon's own
//! parallel iterators wait for every spawned task. Waking a sleeping thread takes 5 to 50 microseconds, longer than
//! many kernels run, so waiting for helpers can cost more than they save. With this implementation, a loop that
//! finishes before a helper wakes up costs its caller only one additional lock, and a helper looks for the next loop
//! before it releases its thread.
//!
//! The table lists median times in microseconds of loops of eight chunks by two threads, each on one Zen 4 core, by the
//! work of the loop and the pause before it: with own threads (the previous implementation), with these tasks,
//! and with rayon's `into_par_iter`.
//!
//! | work | pause | own threads | tasks | rayon's iterator |
//! |------|-------|-------------|-------|------------------|
//! | 2    | 5     | 3.1         | 2.7   | 11.7             |
//! | 20   | 5     | 11.7        | 12.0  | 20.1             |
//! | 100  | 5     | 52.4        | 52.2  | 60.2             |
//! | 2    | 50    | 3.1         | 2.7   | 36.1             |
//! | 100  | 50    | 52.1        | 52.0  | 90.9             |
//! | 2    | 500   | 12.3        | 13.6  | 54.9             |
//! | 100  | 500   | 73.4        | 75.2  | 105.7            |
#![expect(unsafe_code, reason = "helpers use work that borrows from its caller's stack")]

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rayon::ThreadPool;
use xla_hlo::has_thread_pool;

/// Time that a helper looks for more work before it releases its thread. The kernels of a model follow each other
/// faster than this.
const PATIENCE: Duration = Duration::from_micros(100);
/// Number of polls of a variable before the thread yields the processor.
const LOOKS: usize = 64;

/// Calls `work` for each of `0..chunks`, on at most `threads` threads at once. Returns when all calls have returned.
pub fn parallel_for(threads: usize, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
    if threads <= 1 || chunks <= 1 {
        return (0..chunks).for_each(work);
    }
    let pool = Helpers::current();
    let job = Job {
        work,
        chunks,
        next: AtomicUsize::new(0),
        helpers: AtomicUsize::new(0),
        most_helpers: threads - 1,
        panicked: AtomicBool::new(false),
    };
    pool.open(&job);
    // Closes the job and waits for its helpers, even if `work` panics here.
    let closing = Closing { pool: &pool, job: &job };
    job.run();
    drop(closing);
    assert!(!job.panicked.load(Ordering::Relaxed), "a chunk of parallel work panicked");
}

/// Calls `work` with each of `tasks`, on at most `threads` threads at once. Returns when all calls have returned.
pub(crate) fn parallel_tasks<T: Send>(threads: usize, tasks: Vec<T>, work: impl Fn(T) + Sync) {
    let tasks: Vec<Mutex<Option<T>>> = tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
    parallel_for(threads, tasks.len(), &|i| {
        let task = tasks[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        task.into_iter().for_each(&work);
    });
}

/// Calls `work` for each `chunk` elements of `data` (the last chunk may be shorter) with the chunk's number, like
/// [`parallel_for`].
pub(crate) fn parallel_chunks<T: Send>(
    threads: usize,
    data: &mut [T],
    chunk: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    parallel_tasks(threads, data.chunks_mut(chunk).enumerate().collect(), |(i, chunk)| work(i, chunk));
}

/// Parallel loop in progress. Stored on its caller's stack, and in the pool's list until the caller removes it.
struct Job<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    chunks: usize,
    /// Number of the next chunk.
    next: AtomicUsize,
    /// Number of helpers that work on the job. Changed under the pool's lock.
    helpers: AtomicUsize,
    most_helpers: usize,
    panicked: AtomicBool,
}

impl Job<'_> {
    /// Runs chunks until none is left.
    fn run(&self) {
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= self.chunks {
                return;
            }
            (self.work)(chunk);
        }
    }

    fn wants_help(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.chunks && self.helpers.load(Ordering::Relaxed) < self.most_helpers
    }
}

/// Reference to a job whose caller waits in `parallel_for`.
#[derive(Clone, Copy, PartialEq)]
struct JobRef(*const Job<'static>);

impl JobRef {
    /// Creates a reference. The job must outlive all uses of it, whatever its lifetime parameter is: see [`Closing`].
    fn new(job: &Job<'_>) -> JobRef {
        JobRef(std::ptr::from_ref(job).cast())
    }
}

// SAFETY: other threads reach a job only through the pool's list, or while they are counted among its helpers. Both
// keep it alive (see `Closing`), and a job is `Sync`.
unsafe impl Send for JobRef {}

/// Helper threads of one rayon pool.
pub struct Helpers {
    /// Pool of the helpers; `None` for that of the process.
    pool: Option<Arc<ThreadPool>>,
    state: Mutex<State>,
    /// Number of jobs opened so far. Changed under the lock.
    version: AtomicUsize,
    /// Notified when the last helper has left a job whose caller sleeps.
    left: Condvar,
    /// Maximum number of concurrent helpers.
    most: usize,
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helpers").field("pool", &self.pool).field("most", &self.most).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    jobs: Vec<JobRef>,
    /// Number of helpers that were spawned and have not returned.
    spawned: usize,
    /// Number of callers that wait for `left`.
    callers: usize,
}

thread_local! {
    /// Helpers of loops that this thread runs; `None` for the process's helpers.
    static CURRENT: RefCell<Option<Arc<Helpers>>> = const { RefCell::new(None) };
}

impl Helpers {
    /// Creates helpers from the threads of that pool.
    pub fn of(pool: Arc<ThreadPool>) -> Arc<Helpers> {
        let most = pool.current_num_threads();
        Arc::new(Helpers::new(Some(pool), most))
    }

    fn new(pool: Option<Arc<ThreadPool>>, most: usize) -> Helpers {
        Helpers { pool, state: Mutex::default(), version: AtomicUsize::new(0), left: Condvar::new(), most }
    }

    /// Returns the helpers of the process's pool: one for each processor, minus one for the caller.
    fn of_process() -> Arc<Helpers> {
        static HELPERS: OnceLock<Arc<Helpers>> = OnceLock::new();
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        HELPERS.get_or_init(|| Arc::new(Helpers::new(None, processors() - 1))).clone()
    }

    /// Returns the helpers of the loops that this thread runs.
    fn current() -> Arc<Helpers> {
        CURRENT.with_borrow(|current| current.clone()).unwrap_or_else(Helpers::of_process)
    }

    /// Runs `work` with these helpers for its loops.
    pub fn scope<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        /// Restores the previous helpers, even if the work panics.
        struct Before(Option<Arc<Helpers>>);
        impl Drop for Before {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let _before = Before(CURRENT.replace(Some(self.clone())));
        work()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(self: &Arc<Self>, job: &Job<'_>) {
        let mut state = self.state();
        state.jobs.push(JobRef::new(job));
        self.version.fetch_add(1, Ordering::Release);
        self.spawn_helper(state);
    }

    /// Spawns one more helper, up to the maximum.
    fn spawn_helper(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.spawned >= self.most {
            return;
        }
        state.spawned += 1;
        drop(state);
        let helpers = self.clone();
        match &self.pool {
            // The caller does all the work.
            None if !has_thread_pool() => self.state().spawned -= 1,
            None => rayon::spawn(move || helpers.help()),
            Some(pool) => pool.spawn(move || helpers.clone().scope(|| helpers.help())),
        }
    }

    /// Runs chunks of loops as long as there are any.
    fn help(self: &Arc<Self>) {
        let mut seen = 0;
        while self.finds_news(&mut seen) {
            while let Some(JobRef(job)) = self.join() {
                // SAFETY: the job was in the list when this helper was counted, under the lock. Its caller waits until
                // the count is 0, and the count is decremented only after this use.
                let job = unsafe { &*job };
                if catch_unwind(AssertUnwindSafe(|| job.run())).is_err() {
                    job.panicked.store(true, Ordering::Relaxed);
                }
                self.leave(job);
            }
        }
    }

    /// Whether a job was opened after version `seen`. After a while without one, the helper is no longer counted.
    fn finds_news(&self, seen: &mut usize) -> bool {
        let start = Instant::now();
        let mut is_new = || {
            let version = self.version.load(Ordering::Acquire);
            std::mem::replace(seen, version) != version
        };
        while start.elapsed() < PATIENCE {
            for _ in 0..LOOKS {
                if is_new() {
                    return true;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        let mut state = self.state();
        let is_new = is_new();
        state.spawned -= usize::from(!is_new);
        is_new
    }

    /// Adds the helper to a job with chunks left, and spawns the next helper, because a caller spawns only the first.
    fn join(self: &Arc<Self>) -> Option<JobRef> {
        let state = self.state();
        // SAFETY: jobs in the list are alive while the lock is held.
        let wants = |job: &&JobRef| unsafe { &*job.0 }.wants_help();
        let job = *state.jobs.iter().find(wants)?;
        // SAFETY: as above.
        unsafe { &*job.0 }.helpers.fetch_add(1, Ordering::Relaxed);
        self.spawn_helper(state);
        Some(job)
    }

    /// Removes the helper from the job. The job may no longer exist when this returns.
    fn leave(&self, job: &Job<'_>) {
        let state = self.state();
        let last = job.helpers.fetch_sub(1, Ordering::Release) == 1;
        if last && state.callers > 0 {
            self.left.notify_all();
        }
    }
}

/// Guard that closes a job when dropped: removes it from the list, so that no further helper joins, and waits for its
/// helpers.
struct Closing<'a> {
    pool: &'a Helpers,
    job: &'a Job<'a>,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let busy = || self.job.helpers.load(Ordering::Acquire) > 0;
        // If the caller panics, chunks remain; no thread may start them now.
        self.job.next.fetch_max(self.job.chunks, Ordering::Relaxed);
        self.pool.state().jobs.retain(|&job| job != JobRef::new(self.job));
        let start = Instant::now();
        while busy() && start.elapsed() < PATIENCE {
            (0..LOOKS).take_while(|_| busy()).for_each(|_| std::hint::spin_loop());
        }
        if busy() {
            let mut state = self.pool.state();
            state.callers += 1;
            while busy() {
                state = self.pool.left.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.callers -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(chunks: usize) -> usize {
        let sum = AtomicUsize::new(0);
        parallel_for(8, chunks, &|chunk| {
            sum.fetch_add(chunk + 1, Ordering::Relaxed);
        });
        sum.into_inner()
    }

    #[test]
    fn every_chunk_is_done_once() {
        for chunks in [0, 1, 2, 3, 100, 10_000] {
            assert_eq!(sum(chunks), chunks * (chunks + 1) / 2);
        }
    }

    #[test]
    fn loops_run_on_the_pool_that_was_handed_over() {
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(2).thread_name(|_| "theirs".to_string()).build().unwrap();
        let names = Mutex::new(std::collections::HashSet::new());
        let caller = std::thread::current().id();
        Helpers::of(Arc::new(pool)).scope(|| {
            parallel_for(3, 64, &|_| {
                let thread = std::thread::current();
                if thread.id() != caller {
                    names.lock().unwrap().insert(thread.name().unwrap_or_default().to_string());
                }
                std::thread::sleep(Duration::from_millis(1));
            });
        });
        assert_eq!(names.into_inner().unwrap().into_iter().collect::<Vec<_>>(), ["theirs"]);
    }

    #[test]
    fn callers_and_nested_calls_share_the_helpers() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let total = AtomicUsize::new(0);
                        parallel_for(8, 5, &|_| {
                            total.fetch_add(sum(7), Ordering::Relaxed);
                        });
                        assert_eq!(total.into_inner(), 5 * 28);
                    }
                });
            }
        });
    }

    #[test]
    fn helpers_wake_up_from_sleep() {
        for _ in 0..5 {
            std::thread::sleep(2 * PATIENCE);
            let seen = Mutex::new(std::collections::HashSet::new());
            parallel_for(8, 64, &|_| {
                seen.lock().unwrap().insert(std::thread::current().id());
                std::thread::sleep(Duration::from_millis(1));
            });
            assert!(seen.into_inner().unwrap().len() > 1 || Helpers::of_process().most == 0);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_are_done() {
        let caught = catch_unwind(|| {
            parallel_for(8, 50, &|chunk| {
                std::thread::sleep(Duration::from_micros(200));
                assert!(chunk % 10 != 3, "chunk {chunk}");
            });
        });
        assert!(caught.is_err());
        assert_eq!(sum(100), 5050);
    }
}
