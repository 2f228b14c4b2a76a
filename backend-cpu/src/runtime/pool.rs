//! Threads that help with pieces of work. The caller takes part and never waits for a helper that has not begun.
//!
//! That is what a general thread pool does not give: waking a sleeping thread takes 5 to 50 microseconds, more than
//! many kernels run, so a caller that must wait for its helpers loses where it should gain. Here a job that is done
//! before anybody woke up costs its caller one lock more than doing it alone.
#![expect(unsafe_code, reason = "helpers use work that borrows from its caller's stack")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a helper looks for more work before it sleeps: the kernels of a model follow each other faster than this.
const PATIENCE: Duration = Duration::from_micros(100);
/// Looks at a variable between two offers of the processor to other threads.
const LOOKS: usize = 64;

/// Calls `work` for each of `0..pieces`, on at most `threads` threads at once. Returns when all calls have.
pub(crate) fn parallel_for(threads: usize, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
    if threads <= 1 || pieces <= 1 {
        return (0..pieces).for_each(work);
    }
    let pool = Pool::get();
    let job = Job {
        work,
        pieces,
        next: AtomicUsize::new(0),
        helpers: AtomicUsize::new(0),
        most_helpers: threads - 1,
        panicked: AtomicBool::new(false),
    };
    pool.open(&job);
    // Closes the job and waits for its helpers even when `work` panics here.
    let closing = Closing { pool, job: &job };
    job.run();
    drop(closing);
    assert!(!job.panicked.load(Ordering::Relaxed), "a piece of parallel work panicked");
}

/// Calls `work` with each of `tasks`, on at most `threads` threads at once. Returns when all calls have.
pub(crate) fn parallel_tasks<T: Send>(threads: usize, tasks: Vec<T>, work: impl Fn(T) + Sync) {
    let tasks: Vec<Mutex<Option<T>>> = tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
    parallel_for(threads, tasks.len(), &|i| {
        let task = tasks[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        task.into_iter().for_each(&work);
    });
}

/// Calls `work` for each `chunk` elements of `data` (the last one may have fewer) with the chunk's number, like
/// [`parallel_for`].
pub(crate) fn parallel_chunks<T: Send>(
    threads: usize,
    data: &mut [T],
    chunk: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    parallel_tasks(threads, data.chunks_mut(chunk).enumerate().collect(), |(i, chunk)| work(i, chunk));
}

/// Work in progress. Lives on its caller's stack, and in the pool's list until the caller takes it out.
struct Job<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    pieces: usize,
    /// The next piece that nobody has taken.
    next: AtomicUsize,
    /// Helpers that are at it. Changed under the pool's lock.
    helpers: AtomicUsize,
    most_helpers: usize,
    panicked: AtomicBool,
}

impl Job<'_> {
    /// Takes pieces until none is left.
    fn run(&self) {
        loop {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= self.pieces {
                return;
            }
            (self.work)(piece);
        }
    }

    fn wants_help(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.pieces && self.helpers.load(Ordering::Relaxed) < self.most_helpers
    }
}

/// A job of some caller that waits in `parallel_for`.
#[derive(Clone, Copy, PartialEq)]
struct JobRef(*const Job<'static>);

impl JobRef {
    /// The job must outlive all uses of this, whatever its lifetime says: see [`Closing`].
    fn new(job: &Job<'_>) -> JobRef {
        JobRef(std::ptr::from_ref(job).cast())
    }
}

// SAFETY: a job is only reached from other threads through the pool's list, or while counted among its helpers; both
// keep it alive (see `Closing`), and a job is `Sync`.
unsafe impl Send for JobRef {}

struct Pool {
    state: Mutex<State>,
    /// Changed, under the lock, whenever a job is opened.
    version: AtomicUsize,
    /// Told when a job was opened and somebody sleeps.
    opened: Condvar,
    /// Told when the last helper left a job whose caller sleeps.
    left: Condvar,
    helpers: usize,
}

#[derive(Default)]
struct State {
    jobs: Vec<JobRef>,
    /// Helpers waiting for `opened`.
    asleep: usize,
    /// Callers waiting for `left`.
    callers: usize,
}

impl Pool {
    /// The pool of this process, with a helper for each processor but one.
    fn get() -> &'static Pool {
        static POOL: OnceLock<Pool> = OnceLock::new();
        static STARTED: OnceLock<()> = OnceLock::new();
        let pool = POOL.get_or_init(|| Pool {
            state: Mutex::default(),
            version: AtomicUsize::new(0),
            opened: Condvar::new(),
            left: Condvar::new(),
            helpers: std::thread::available_parallelism().map_or(0, |n| n.get() - 1),
        });
        STARTED.get_or_init(|| {
            for number in 0..pool.helpers {
                // Without this thread the work is done by the others.
                drop(std::thread::Builder::new().name(format!("xla-cpu-{number}")).spawn(|| pool.help()));
            }
        });
        pool
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, job: &Job<'_>) {
        let mut state = self.state();
        state.jobs.push(JobRef::new(job));
        self.version.fetch_add(1, Ordering::Release);
        let asleep = state.asleep > 0;
        drop(state);
        if asleep {
            self.opened.notify_one();
        }
    }

    /// A helper's life.
    fn help(&self) {
        let mut seen = 0;
        loop {
            self.await_news(&mut seen);
            while let Some(JobRef(job)) = self.join() {
                // SAFETY: the job was in the list when this helper was counted, under the lock; its caller waits until
                // the count is 0, and it is counted down only after this use.
                let job = unsafe { &*job };
                if catch_unwind(AssertUnwindSafe(|| job.run())).is_err() {
                    job.panicked.store(true, Ordering::Relaxed);
                }
                self.leave(job);
            }
        }
    }

    /// Returns when a job was opened after version `seen`.
    fn await_news(&self, seen: &mut usize) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            for _ in 0..LOOKS {
                let version = self.version.load(Ordering::Acquire);
                if version != *seen {
                    *seen = version;
                    return;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        let mut state = self.state();
        state.asleep += 1;
        while self.version.load(Ordering::Relaxed) == *seen {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.asleep -= 1;
        *seen = self.version.load(Ordering::Relaxed);
    }

    /// Counts the helper in for a job with pieces left, and wakes the next helper: a caller wakes only one itself.
    fn join(&self) -> Option<JobRef> {
        let state = self.state();
        // SAFETY: jobs in the list are alive while the lock is held.
        let wants = |job: &&JobRef| unsafe { &*job.0 }.wants_help();
        let job = *state.jobs.iter().find(wants)?;
        // SAFETY: as above.
        unsafe { &*job.0 }.helpers.fetch_add(1, Ordering::Relaxed);
        let asleep = state.asleep > 0;
        drop(state);
        if asleep {
            self.opened.notify_one();
        }
        Some(job)
    }

    /// Counts the helper out. The job may be gone when this returns.
    fn leave(&self, job: &Job<'_>) {
        let state = self.state();
        let last = job.helpers.fetch_sub(1, Ordering::Release) == 1;
        if last && state.callers > 0 {
            self.left.notify_all();
        }
    }
}

/// Takes a job out of the list when dropped, so that nobody joins any more, and waits for those who have.
struct Closing<'a> {
    pool: &'a Pool,
    job: &'a Job<'a>,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let busy = || self.job.helpers.load(Ordering::Acquire) > 0;
        // A panicking caller leaves pieces behind, which nobody shall begin now.
        self.job.next.fetch_max(self.job.pieces, Ordering::Relaxed);
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

    fn sum(pieces: usize) -> usize {
        let sum = AtomicUsize::new(0);
        parallel_for(8, pieces, &|piece| {
            sum.fetch_add(piece + 1, Ordering::Relaxed);
        });
        sum.into_inner()
    }

    #[test]
    fn every_piece_is_done_once() {
        for pieces in [0, 1, 2, 3, 100, 10_000] {
            assert_eq!(sum(pieces), pieces * (pieces + 1) / 2);
        }
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
            assert!(seen.into_inner().unwrap().len() > 1 || Pool::get().helpers == 0);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_are_done() {
        let caught = catch_unwind(|| {
            parallel_for(8, 50, &|piece| {
                std::thread::sleep(Duration::from_micros(200));
                assert!(piece % 10 != 3, "piece {piece}");
            });
        });
        assert!(caught.is_err());
        assert_eq!(sum(100), 5050);
    }
}
