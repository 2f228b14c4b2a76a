//! Execution of a thread's requests: mbarrier operations, bulk copies and proxy fences.

use super::access::LANES_OF_WARP;
use super::block::{Block, Fault, Thread, ThreadStatus};
use super::mbarrier::{BARRIER_BYTES, MOST, PhaseBarrier};
use crate::code::{Address, Phase, Request};
use crate::finding::Class;

/// Number of times that all waits time out, as on a device, before waiting threads are reported as a deadlock.
const MOST_TIMEOUTS: u32 = 2;

impl Block<'_> {
    /// Executes a request; false if the thread must wait and retry.
    pub(super) fn request(&mut self, thread: usize, number: u32) -> Result<bool, Fault> {
        let kernel = self.kernel;
        let request = &kernel.requests[number as usize];
        if !matches!(request, Request::Wait { .. } | Request::Fence | Request::Prefetch(_)) {
            self.went_on();
        }
        match *request {
            Request::Initialize { barrier, count } => {
                let (at, count) = (self.address(thread, barrier), self.get(thread, count) as u32);
                self.initialize(thread, at, count)?;
            }
            Request::Invalidate(barrier) => {
                let at = self.barrier(thread, self.address(thread, barrier))?;
                self.barriers.at.remove(&at);
            }
            Request::Arrive { barrier, count, bytes, state } => {
                let at = self.barrier(thread, self.address(thread, barrier))?;
                let [count, bytes] = [count, bytes].map(|slot| self.get(thread, slot) as u32);
                let phase = self.arrive(thread, at, count, bytes)?;
                self.set(thread, state, phase);
            }
            Request::Expect { barrier, bytes } => {
                let at = self.barrier(thread, self.address(thread, barrier))?;
                let bytes = self.get(thread, bytes) as u32;
                self.expect(thread, at, bytes)?;
            }
            Request::Wait { barrier, phase, p } => {
                let at = self.barrier(thread, self.address(thread, barrier))?;
                let Some(answer) = self.wait(thread, at, phase)? else {
                    self.threads[thread].status = ThreadStatus::AtPhase { barrier: at };
                    return Ok(false);
                };
                self.set(thread, p, u64::from(answer));
            }
            Request::Copy { to, map, coordinates, barrier } => {
                let [to, map, barrier] = [to, map, barrier].map(|address| self.address(thread, address));
                let barrier = self.barrier(thread, barrier)?;
                let coordinates: Vec<i32> =
                    kernel.list(coordinates).iter().map(|&slot| self.get(thread, slot) as i32).collect();
                self.begin_bulk_copy(thread, (to, map, barrier), &coordinates)?;
                self.settle(thread, barrier, false)?;
            }
            Request::Prefetch(map) => {
                let at = self.address(thread, map);
                self.tensor_map(thread, at)?;
            }
            Request::Fence => {
                let known = &mut self.threads[thread].knows;
                known.fence();
                known.tick(thread);
            }
        }
        Ok(true)
    }

    fn address(&self, thread: usize, address: Address) -> u64 {
        self.get(thread, address.base).wrapping_add(address.offset as i64 as u64)
    }

    fn initialize(&mut self, thread: usize, address: u64, count: u32) -> Result<(), Fault> {
        let at = self.check_barrier(thread, address)?;
        if !(1..=MOST).contains(&i64::from(count)) {
            let message = format!("the mbarrier at {at:#x} is to have {count} arrivals, and can have 1 to {MOST}");
            return Err(Fault::new(thread, Class::Synchronization, message));
        }
        if self.barriers.at.contains_key(&at) {
            let message = format!("the mbarrier at {at:#x} is initialised again, without mbarrier.inval before");
            return Err(Fault::new(thread, Class::Synchronization, message));
        }
        self.renounce(at..at + BARRIER_BYTES, thread, None)?;
        let agent = self.threads.len() + self.threads.len().div_ceil(LANES_OF_WARP) + self.barriers.made;
        self.barriers.made += 1;
        let made = (thread, self.threads[thread].knows.seen(thread));
        self.barriers.at.insert(at, PhaseBarrier::new(count, agent, made));
        Ok(())
    }

    /// Checks the address of an mbarrier object and returns its offset.
    fn check_barrier(&self, thread: usize, address: u64) -> Result<usize, Fault> {
        let size = self.shared.len();
        match usize::try_from(address).ok().filter(|at| at.checked_add(BARRIER_BYTES).is_some_and(|end| end <= size)) {
            Some(at) if at % BARRIER_BYTES == 0 => Ok(at),
            Some(_) => {
                let message = format!("the mbarrier at {address:#x} is not aligned to 8 bytes");
                Err(Fault::new(thread, Class::Alignment, message))
            }
            None => {
                let message = format!("the mbarrier at {address:#x} is outside of the {size} bytes of shared memory");
                Err(Fault::new(thread, Class::Bounds, message))
            }
        }
    }

    /// Returns the offset of an initialised barrier; its initialisation must be ordered before this access.
    fn barrier(&self, thread: usize, address: u64) -> Result<usize, Fault> {
        let at = self.check_barrier(thread, address)?;
        let Some(barrier) = self.barriers.at.get(&at) else {
            let message = format!("the mbarrier at {at:#x} has not been initialised");
            return Err(Fault::new(thread, Class::Synchronization, message));
        };
        let (maker, clock) = barrier.made;
        if maker != thread && self.threads[thread].knows.seen(maker) < clock {
            let message = format!(
                "the mbarrier at {at:#x} was initialised by thread {maker}, with nothing between to order its use"
            );
            return Err(Fault::new(thread, Class::Race, message));
        }
        let (_, written) = self.shared.raw(at..at + BARRIER_BYTES);
        if self.memory.checks_written() && written.contains(&1) {
            let message = format!("the mbarrier at {at:#x} has been overwritten");
            return Err(Fault::new(thread, Class::Race, message));
        }
        Ok(at)
    }

    fn found(&mut self, thread: usize, at: usize) -> Result<&mut PhaseBarrier, Fault> {
        let gone =
            || Fault::new(thread, Class::Synchronization, format!("the mbarrier at {at:#x} is not there any more"));
        self.barriers.at.get_mut(&at).ok_or_else(gone)
    }

    /// `mbarrier.arrive`: returns the phase of the arrival.
    fn arrive(&mut self, thread: usize, at: usize, count: u32, bytes: u32) -> Result<u64, Fault> {
        self.expect(thread, at, bytes)?;
        let Some(barrier) = self.barriers.at.get_mut(&at) else { return Ok(0) };
        let (phase, missing) = (barrier.phase, barrier.missing);
        let knows = &mut self.threads[thread].knows;
        if !barrier.arrive(count, knows) || count == 0 {
            let message =
                format!("{count} arrivals at the mbarrier at {at:#x}, whose phase {phase} is to have {missing} more");
            return Err(Fault::new(thread, Class::Synchronization, message));
        }
        knows.tick(thread);
        self.settle(thread, at, false)?;
        Ok(phase)
    }

    fn expect(&mut self, thread: usize, at: usize, bytes: u32) -> Result<(), Fault> {
        let barrier = self.found(thread, at)?;
        if barrier.expect(bytes) {
            return Ok(());
        }
        let message = format!("the mbarrier at {at:#x} is to expect {} bytes, and can expect {MOST}", barrier.bytes);
        Err(Fault::new(thread, Class::Synchronization, message))
    }

    /// Completes the phase if nothing is missing. Pending copies are executed only if a thread waits for them
    /// (`asked`).
    fn settle(&mut self, thread: usize, at: usize, asked: bool) -> Result<(), Fault> {
        let sleeps = |status: ThreadStatus| matches!(status, ThreadStatus::AtPhase { barrier } if barrier == at);
        let asked = asked || self.threads.iter().any(|thread| sleeps(thread.status));
        let barrier = self.found(thread, at)?;
        if barrier.missing == 0 && barrier.under_way() > barrier.bytes {
            let message = format!(
                "copies bring {} bytes to phase {} of the mbarrier at {at:#x}, which expects {}",
                barrier.under_way(),
                barrier.phase,
                barrier.bytes
            );
            return Err(Fault::new(thread, Class::Synchronization, message));
        }
        if !barrier.is_ready() || !asked && !barrier.copies.is_empty() {
            return Ok(());
        }
        for copy in std::mem::take(&mut barrier.copies) {
            self.finish_bulk_copy(&copy)?;
        }
        self.found(thread, at)?.complete();
        self.went_on();
        for thread in &mut self.threads {
            if sleeps(thread.status) {
                // A wait may return false, after which the program must retry.
                (thread.status, thread.gives_up) = (ThreadStatus::Ready, true);
            }
        }
        Ok(())
    }

    /// Tests a phase; `None` if the thread must wait for it.
    fn wait(&mut self, thread: usize, at: usize, phase: Phase) -> Result<Option<bool>, Fault> {
        let wanted = match phase {
            Phase::Parity(slot) => self.get(thread, slot) & 0xffff_ffff,
            Phase::Of(slot) => self.get(thread, slot),
        };
        if matches!(phase, Phase::Parity(_)) && wanted > 1 {
            let message = format!("the parity {wanted} of a phase of the mbarrier at {at:#x} is neither 0 nor 1");
            return Err(Fault::new(thread, Class::Synchronization, message));
        }
        let is_complete = |barrier: &PhaseBarrier| match phase {
            Phase::Parity(_) => barrier.phase & 1 != wanted,
            Phase::Of(_) => barrier.phase > wanted,
        };
        if std::mem::take(&mut self.threads[thread].gives_up) {
            return Ok(Some(false));
        }
        if !is_complete(self.found(thread, at)?) {
            self.settle(thread, at, true)?;
        }
        let Some(barrier) = self.barriers.at.get(&at) else { return Ok(None) };
        if is_complete(barrier) {
            let knows = &mut self.threads[thread].knows;
            knows.join(&barrier.passed);
            knows.tick(thread);
            return Ok(Some(true));
        }
        Ok(None)
    }

    /// Ends all waits for phases unsuccessfully, if no thread can proceed. Returns false if no thread waits, or if the
    /// limit is reached.
    pub(super) fn give_up(&mut self) -> bool {
        if self.barriers.timeouts >= MOST_TIMEOUTS {
            return false;
        }
        self.barriers.timeouts += 1;
        let mut found = false;
        for thread in &mut self.threads {
            if matches!(thread.status, ThreadStatus::AtPhase { .. }) {
                (thread.status, thread.gives_up, found) = (ThreadStatus::Ready, true, true);
            }
        }
        found
    }

    /// Records that a thread has made progress.
    pub(super) fn went_on(&mut self) {
        self.barriers.timeouts = 0;
    }

    /// Returns the fault of threads that wait for phases that never complete.
    pub(super) fn stuck(&self) -> Option<Fault> {
        let mut told = Vec::new();
        let mut first = None;
        for (at, barrier) in &self.barriers.at {
            let waits = |thread: &Thread| thread.status == ThreadStatus::AtPhase { barrier: *at };
            let Some(thread) = self.threads.iter().position(waits) else { continue };
            first = Some(first.unwrap_or(thread).min(thread));
            told.push(format!(
                "thread {thread} for phase {} of the mbarrier at {at:#x} ({} arrivals and {} bytes are missing)",
                barrier.phase,
                barrier.missing,
                barrier.bytes - barrier.under_way()
            ));
        }
        let message = format!("threads wait, and no thread can go on: {}", told.join(", "));
        first.map(|thread| Fault::new(thread, Class::Synchronization, message))
    }

    /// Returns an error if a block ends before a bulk copy has completed.
    pub(super) fn check_copies_done(&self) -> Result<(), Fault> {
        for (at, barrier) in &self.barriers.at {
            if let Some(copy) = barrier.copies.first() {
                let message = format!(
                    "the block ends, and nobody has waited for the bulk copy to shared memory at {:#x} with the mbarrier \
                     at {at:#x}",
                    copy.to
                );
                return Err(Fault::new(copy.thread, Class::Synchronization, message));
            }
        }
        Ok(())
    }
}
