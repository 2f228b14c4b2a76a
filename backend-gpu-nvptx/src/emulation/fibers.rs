//! Threads of a block as fibers: each runs until it waits for other threads, and resumes when they have arrived.
#![expect(unsafe_code, reason = "generated code calls back, and is called, through raw pointers")]

use std::ffi::c_void;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use xla_hlo::{Error, Result};
use xla_llvm::jit::RuntimeSymbol;
use xla_llvm::simt::{BALLOT, BARRIER, EXCHANGE, HostThread, WAIT_FOR_PHASE, WARP, host_mbarrier_is_complete};

use super::function::EmulatedFunction;

/// Size of a fiber's stack in bytes, of address space only. Unoptimized code stores most values in its frame.
const STACK_BYTES: usize = 256 << 10;

/// Event that a fiber waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FiberWait {
    /// Barrier of all threads of the block.
    Barrier,
    /// Exchange: all threads of the warp, each of which provides a value.
    Exchange(u64),
    /// Completion of the phase of an mbarrier with this parity.
    Phase { barrier: *const u64, parity: u32 },
}

impl FiberWait {
    /// Whether the fiber waits for a phase that is complete.
    fn is_over(self) -> bool {
        match self {
            // SAFETY: barriers are in the block's shared memory, which lives while its threads run, and are aligned;
            // threads run in sequence, all on this host thread.
            FiberWait::Phase { barrier, parity } => host_mbarrier_is_complete(unsafe { barrier.read() }, parity),
            FiberWait::Barrier | FiberWait::Exchange(_) => false,
        }
    }
}

/// Values that the lanes of a warp provided to an exchange.
type LaneValues = [u64; WARP as usize];

/// Thread with the state that it needs to wait. Generated code receives a pointer to the first field. A fiber resumes
/// with a pointer to the values of its warp, which [`run_block`] keeps until the fiber is suspended again.
#[repr(C)]
struct Fiber {
    thread: HostThread,
    yielder: *const Yielder<*const LaneValues, FiberWait>,
}

/// State of a fiber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FiberState {
    Ready,
    Waits(FiberWait),
    Done,
}

/// Stacks of finished fibers, for those of the next block: allocating a stack takes longer than running a block.
#[derive(Default)]
pub(super) struct Stacks(Vec<DefaultStack>);

impl Stacks {
    fn take(&mut self) -> Result<DefaultStack> {
        let made = || DefaultStack::new(STACK_BYTES);
        let stack = self.0.pop().map_or_else(made, Ok);
        stack.map_err(|e| {
            Error::resource_exhausted(format!("the stack for a thread of a kernel cannot be allocated: {e}"))
        })
    }
}

/// Runs all threads of one block. [`Error::Internal`] for a deadlock, if some threads wait for others that never
/// arrive.
pub(super) fn run_block(
    function: &EmulatedFunction,
    arguments: &[u64],
    stacks: &mut Stacks,
    mut thread: impl FnMut(u32) -> HostThread,
) -> Result<()> {
    let mut fibers = Vec::with_capacity(function.threads as usize);
    for number in 0..function.threads {
        let (entry, record, arguments) = (function.entry, thread(number), arguments.as_ptr());
        let stack = stacks.take()?;
        let fiber = Coroutine::with_stack(stack, move |yielder: &Yielder<*const LaneValues, FiberWait>, _| {
            let mut fiber = Fiber { thread: record, yielder };
            // SAFETY: as in `EmulatedCode::launch`. The pointer is one to the whole fiber, which lives on this stack
            // until the call returns, so the runtime functions below may use the fields after the thread.
            unsafe { entry(arguments, (&raw mut fiber).cast()) }
        });
        fibers.push(fiber);
    }
    let mut states = vec![FiberState::Ready; fibers.len()];
    loop {
        let mut moved = false;
        let together =
            states.iter().all(|state| matches!(state, FiberState::Waits(FiberWait::Barrier) | FiberState::Done));
        for (warp, fibers) in fibers.chunks_mut(WARP as usize).enumerate() {
            let first = warp * WARP as usize;
            let states = &mut states[first..first + fibers.len()];
            let Some(given) = ready(states, together) else { continue };
            let some = states.contains(&FiberState::Ready);
            for (fiber, state) in fibers.iter_mut().zip(states) {
                if *state == FiberState::Done || some && *state != FiberState::Ready {
                    continue;
                }
                moved = true;
                *state = match fiber.resume(&raw const given) {
                    CoroutineResult::Yield(wait) => FiberState::Waits(wait),
                    CoroutineResult::Return(()) => FiberState::Done,
                };
            }
        }
        if !moved {
            break;
        }
    }
    match states.iter().position(|state| *state != FiberState::Done) {
        None => {
            stacks.0.extend(fibers.into_iter().map(Coroutine::into_stack));
            Ok(())
        }
        Some(stuck) => {
            for fiber in &mut fibers {
                // SAFETY: the stacks contain frames of generated code and of the functions below, which have nothing to
                // drop; there is no reference to them. Dropping a fiber would unwind its stack, which is impossible
                // through generated code.
                unsafe { fiber.force_reset() };
            }
            Err(Error::internal(format!(
                "thread {stuck} of a block waits ({:?}) for threads that wait elsewhere or are done",
                states[stuck]
            )))
        }
    }
}

/// Marks threads whose wait is over as ready. Returns the values with which the ready threads of a warp resume, or all
/// of its threads if none is ready; `None` if the warp must wait.
fn ready(states: &mut [FiberState], block_is_at_barrier: bool) -> Option<LaneValues> {
    let mut given = [0; WARP as usize];
    for state in states.iter_mut() {
        if matches!(state, FiberState::Waits(wait) if wait.is_over()) {
            *state = FiberState::Ready;
        }
    }
    if block_is_at_barrier || states.contains(&FiberState::Ready) {
        return Some(given);
    }
    for (given, state) in given.iter_mut().zip(states) {
        match state {
            FiberState::Waits(FiberWait::Exchange(value)) => *given = *value,
            FiberState::Ready | FiberState::Waits(_) | FiberState::Done => return None,
        }
    }
    Some(given)
}

/// Returns the runtime functions that kernels call.
pub(super) fn symbols() -> [RuntimeSymbol<'static>; 4] {
    [
        RuntimeSymbol { name: BARRIER, address: barrier as *const c_void },
        RuntimeSymbol { name: EXCHANGE, address: exchange as *const c_void },
        RuntimeSymbol { name: BALLOT, address: ballot as *const c_void },
        RuntimeSymbol { name: WAIT_FOR_PHASE, address: wait_mbarrier as *const c_void },
    ]
}

/// Waits for all threads of the block.
unsafe extern "C" fn barrier(thread: *mut HostThread) {
    // SAFETY: only `run_block` runs kernels that wait, with a pointer to a whole fiber; its yielder lives as long as
    // the fiber.
    unsafe { (*(*thread.cast::<Fiber>()).yielder).suspend(FiberWait::Barrier) };
}

/// Provides a value to the warp, and returns the values of all lanes, valid until the fiber is suspended again.
unsafe extern "C" fn exchange(thread: *mut HostThread, value: u64) -> *const LaneValues {
    // SAFETY: as for `barrier`.
    unsafe { (*(*thread.cast::<Fiber>()).yielder).suspend(FiberWait::Exchange(value)) }
}

/// Returns one bit per lane of the warp, set if its condition is not 0.
unsafe extern "C" fn ballot(thread: *mut HostThread, condition: u64) -> u64 {
    // SAFETY: as for `barrier`; `run_block` keeps the values until this fiber is suspended again.
    let conditions = unsafe { &*exchange(thread, condition) };
    conditions.iter().rev().fold(0, |votes, &condition| votes << 1 | u64::from(condition != 0))
}

/// Waits for a phase of an mbarrier.
unsafe extern "C" fn wait_mbarrier(thread: *mut HostThread, barrier: *const u64, parity: u32) {
    let wait = FiberWait::Phase { barrier, parity };
    if !wait.is_over() {
        // SAFETY: as for `barrier`.
        unsafe { (*(*thread.cast::<Fiber>()).yielder).suspend(wait) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(entry: super::super::function::KernelEntry, threads: u32, results: &mut [u64]) -> Result<()> {
        let function = EmulatedFunction { entry, threads, shared_bytes: 0, together: true, parameters: 1 };
        let arguments = [results.as_mut_ptr() as u64];
        let thread = |thread| HostThread { thread, block: 0, threads, blocks: 1, shared: std::ptr::null_mut() };
        run_block(&function, &arguments, &mut Stacks::default(), thread)
    }

    /// Exchanges values through shared memory before and after a barrier, and by a shuffle from the next lane.
    unsafe extern "C" fn neighbours(arguments: *const u64, thread: *mut HostThread) {
        // SAFETY: `run` passes the address of one number for each thread, and a fiber's thread.
        unsafe {
            let (number, results) = ((*thread).thread, (*arguments as *mut u64));
            *results.add(number as usize) = u64::from(number) + 1;
            barrier(thread);
            let next = *results.add(((number + 1) % (*thread).threads) as usize);
            barrier(thread);
            *results.add(number as usize) = next + 100 * (*exchange(thread, next))[((number + 1) % WARP) as usize];
        }
    }

    /// Waits in all threads except one.
    unsafe extern "C" fn stuck(_: *const u64, thread: *mut HostThread) {
        // SAFETY: as above.
        unsafe {
            if (*thread).thread != 3 {
                exchange(thread, 0);
            }
        }
    }

    #[test]
    fn threads_see_what_others_wrote_before_a_barrier_and_what_lanes_give() {
        let mut results = [0; 64];
        run(neighbours, 64, &mut results).expect("all threads come");
        assert_eq!(results[..2], [302, 403]);
        // The last lane of the first warp reads from the first lane; the last thread reads the value of the first
        // thread.
        assert_eq!((results[31], results[63]), (200 + 33, 1 + 3400));
    }

    /// Thread 0 waits for a phase that the threads of the next warp complete after a shuffle, and then for a phase that
    /// is never complete.
    unsafe extern "C" fn phases(arguments: *const u64, thread: *mut HostThread) {
        // SAFETY: as above.
        unsafe {
            let (number, words) = ((*thread).thread, *arguments as *mut u64);
            match number {
                0 => {
                    wait_mbarrier(thread, words, 1);
                    wait_mbarrier(thread, words, 0);
                    *words.add(1) = *words.add(2);
                    wait_mbarrier(thread, words.add(3), 0);
                }
                32.. => {
                    *words.add(2) = 7 + (*exchange(thread, 1))[0];
                    *words = 1 << 63;
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_thread_waits_for_a_phase_while_others_run() {
        let mut words = [0; 4];
        let error = run(phases, 64, &mut words).expect_err("the last phase is never complete");
        assert_eq!(words[1], 8);
        assert!(error.to_string().contains("thread 0 of a block waits"), "{error}");
    }

    #[test]
    fn threads_that_wait_for_ever_are_an_error() {
        let error = run(stuck, 32, &mut [0; 32]).expect_err("one thread is missing");
        assert!(error.to_string().contains("thread 0 of a block waits"), "{error}");
    }
}
