//! Execution of a block: each thread runs until it must wait for other threads.

use std::cmp::Ordering;

use super::access::{LANES_OF_WARP, Who};
use super::knowledge::{Actor, Knowledge};
use super::launch::{Launch, Outside, coordinates};
use super::marks::Marks;
use super::mbarrier::Barriers;
use super::memory::Memory;
use super::pending::Copies;
use super::progress::WarpProgress;
use super::reach::{Doubt, InvalidAccess, Reach};
use super::store::Store;
use crate::code::{ALWAYS, Kernel, MemoryOperand, Op, Run, Slot, Special};
use crate::finding::{Class, Finding, Problem};

/// Number of instructions of a thread without a wait after which the kernel is reported as endless.
const MOST_STEPS: u64 = 1 << 33;

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadStatus {
    Ready,
    /// Waits at a collective instruction of its warp.
    AtCollective,
    /// Waits at a barrier: its index, the number of threads it is for (zero for all), and whether warps must be
    /// converged.
    AtBarrier {
        id: u64,
        count: u64,
        aligned: bool,
    },
    /// Waits for a phase of the mbarrier at this address of shared memory.
    AtPhase {
        barrier: usize,
    },
    /// Has a request, which is executed next.
    AtRequest(u32),
    Done,
}

/// Thread without its registers.
#[derive(Debug)]
pub(super) struct Thread {
    /// Index of the next instruction, or of the one where the thread waits.
    pub at: u32,
    pub status: ThreadStatus,
    /// Observed vector clock of the lanes of its warp.
    pub heard: [u64; LANES_OF_WARP],
    /// Observed clocks of all agents, in kernels with agents other than threads.
    pub knows: Knowledge,
    /// Whether the current wait for a phase ends unsuccessfully.
    pub gives_up: bool,
    /// wgmma group that writes each register, the latest completed group, and whether groups are pending.
    pub marks: Vec<u32>,
    pub done: u32,
    pub is_busy: bool,
    local: Store,
    copies: Copies,
    doubt: Option<Doubt>,
}

impl Thread {
    /// Returns the memory that the thread can access, in a launch and a block that began with segments `since` and
    /// `first`.
    fn reach<'r>(
        &'r mut self,
        number: usize,
        (kernel, launch): (&'r Kernel, &'r Launch<'_>),
        (memory, shared): (&'r mut Memory, &'r mut Store),
        (since, first): (u64, u64),
    ) -> Reach<'r> {
        let who = self.who(number, memory.segments, (since, first));
        let actor = kernel.is_asynchronous.then(|| {
            let threads = launch.block.iter().product::<u32>() as usize;
            Actor::thread(number, threads, &self.knows)
        });
        Reach {
            memory,
            shared,
            local: &mut self.local,
            parameters: launch.parameters,
            kernel,
            here: Who { since: first, actor, ..who },
            who,
            copies: &mut self.copies,
            doubt: self.doubt.take(),
            at: 0,
        }
    }

    /// Returns the thread as an accessor of global memory.
    fn who(&self, number: usize, segment: u64, (since, first): (u64, u64)) -> Who<'static> {
        Who {
            thread: number as u64,
            segment,
            block: first,
            since,
            heard: self.heard,
            lanes: LANES_OF_WARP,
            actor: None,
        }
    }
}

/// Error, and the thread that detected it.
pub(super) struct Fault {
    pub thread: usize,
    pub problem: Problem,
    /// Other access of a race.
    other: Option<(u64, u64)>,
}

impl Fault {
    pub fn new(thread: usize, class: Class, message: impl Into<String>) -> Fault {
        Fault::of(thread, Problem::new(class, message))
    }

    pub fn of(thread: usize, problem: Problem) -> Fault {
        Fault { thread, problem, other: None }
    }

    pub fn from_access(thread: usize, (problem, other): InvalidAccess) -> Fault {
        Fault { thread, problem, other }
    }
}

/// Block in execution; the blocks of a launch reuse it.
pub(super) struct Block<'a> {
    pub kernel: &'a Kernel,
    launch: &'a Launch<'a>,
    pub memory: &'a mut Memory,
    outside: &'a mut dyn Outside,
    pub shared: Store,
    pub barriers: Barriers,
    pub warps: Vec<WarpProgress>,
    /// Slots of all threads, stored consecutively by thread.
    pub registers: Vec<u64>,
    pub threads: Vec<Thread>,
    number: [u32; 3],
    /// First segment of the launch, and of the block.
    since: u64,
    pub first: u64,
}

impl<'a> Block<'a> {
    pub fn new(memory: &'a mut Memory, launch: &'a Launch<'a>, since: u64, outside: &'a mut dyn Outside) -> Block<'a> {
        let kernel = launch.kernel;
        let count = launch.block.iter().product::<u32>() as usize;
        let checked = memory.checks_written();
        let threads = (0..count).map(|_| Thread {
            at: 0,
            status: ThreadStatus::Done,
            heard: [0; LANES_OF_WARP],
            knows: Knowledge::default(),
            gives_up: false,
            marks: Vec::new(),
            done: 0,
            is_busy: false,
            local: Store::new(kernel.local_bytes, checked),
            copies: Copies::default(),
            doubt: None,
        });
        let threads = threads.collect();
        // If no thread ever waits, all threads use one set of registers in sequence.
        let files = if kernel.waits { count } else { 1 };
        let registers = vec![0; kernel.image.len() * files];
        let (shared, barriers) = (Store::default(), Barriers::default());
        let (warps, number, first) = (Vec::new(), [0; 3], since);
        Block { kernel, launch, memory, outside, shared, barriers, warps, registers, threads, number, since, first }
    }

    /// Returns bytes of the kernel's parameters.
    pub(super) fn parameters(&self, at: usize, bytes: usize) -> Option<&[u8]> {
        self.launch.parameters.get(at..at.checked_add(bytes)?)
    }

    /// Returns a thread as an accessor of global memory.
    pub(super) fn who(&self, thread: usize) -> Who<'static> {
        self.threads[thread].who(thread, self.memory.segments, (self.since, self.first))
    }

    /// Returns the number of the next segment.
    pub fn next_segment(&self) -> u64 {
        self.memory.segments
    }

    /// Runs the block with a given index.
    pub fn run(&mut self, number: [u32; 3]) -> Result<(), Fault> {
        self.number = number;
        self.first = self.memory.segments;
        let shared = self.kernel.shared_bytes + self.launch.dynamic_shared;
        let checked = self.memory.checks_written();
        self.shared.renew(shared, checked);
        for thread in &mut self.threads {
            thread.at = 0;
            thread.status = ThreadStatus::Ready;
            thread.doubt = None;
            thread.copies.clear();
            if self.kernel.local_bytes > 0 {
                thread.local.renew(self.kernel.local_bytes, checked);
            }
        }
        self.reset_clocks();
        if self.kernel.is_asynchronous {
            self.reset_agents();
        }
        let mut result = if self.kernel.waits { self.run_together() } else { self.run_each() };
        if self.kernel.is_asynchronous {
            result = result.and_then(|()| self.check_copies_done()).and_then(|()| self.check_warp_groups());
        }
        self.memory.segments += 1;
        result
    }

    /// Runs all threads in ascending order. Compilers hoist loads above the test that makes the last threads return
    /// without effects. Before another thread's write such a load would look like a race. After the write the detector
    /// sees that its value is never used.
    fn run_each(&mut self) -> Result<(), Fault> {
        for thread in 0..self.threads.len() {
            self.start(thread, 0);
            self.run_thread(thread, 0)?;
        }
        Ok(())
    }

    fn run_together(&mut self) -> Result<(), Fault> {
        let (count, slots) = (self.threads.len(), self.kernel.image.len());
        (0..count).for_each(|thread| self.start(thread, thread * slots));
        let warps = count.div_ceil(LANES_OF_WARP);
        loop {
            for number in 0..warps {
                let warp = if self.launch.backwards { warps - 1 - number } else { number };
                let lanes = warp * LANES_OF_WARP..count.min((warp + 1) * LANES_OF_WARP);
                loop {
                    for number in lanes.clone() {
                        let thread =
                            if self.launch.backwards { lanes.end - 1 - (number - lanes.start) } else { number };
                        if self.threads[thread].status == ThreadStatus::Ready {
                            self.run_thread(thread, thread * slots)?;
                        }
                    }
                    if !self.threads[lanes.clone()].iter().any(|thread| thread.status == ThreadStatus::AtCollective)
                        || !self.do_collective(lanes.clone())?
                    {
                        break;
                    }
                }
            }
            if self.threads.iter().all(|thread| thread.status == ThreadStatus::Done) {
                return Ok(());
            }
            if self.threads.iter().any(|thread| thread.status == ThreadStatus::Ready) {
                continue;
            }
            if let Some(stuck) = self.pass_barrier()?
                && !self.give_up()
            {
                return Err(self.stuck().unwrap_or(stuck));
            }
        }
    }

    /// Resets the knowledge of all agents.
    fn reset_agents(&mut self) {
        let (threads, slots) = (self.threads.len(), self.kernel.image.len());
        let warps = threads.div_ceil(LANES_OF_WARP);
        for (number, thread) in self.threads.iter_mut().enumerate() {
            thread.knows = Knowledge::of(number, threads + warps);
            thread.marks.clear();
            thread.marks.resize(if self.kernel.multiplies { slots } else { 0 }, 0);
            (thread.gives_up, thread.done, thread.is_busy) = (false, 0, false);
        }
        self.barriers = Barriers::default();
        self.warps.clear();
        self.warps.resize(warps, WarpProgress::default());
    }

    /// Sets the slots of a thread to their initial values.
    fn start(&mut self, thread: usize, base: usize) {
        let registers = &mut self.registers[base..base + self.kernel.image.len()];
        registers.copy_from_slice(&self.kernel.image);
        let place = coordinates(thread as u64, self.launch.block);
        for (special, slot) in &self.kernel.specials {
            registers[*slot as usize] = u64::from(match *special {
                Special::Thread(d) => place[d],
                Special::Threads(d) => self.launch.block[d],
                Special::Block(d) => self.number[d],
                Special::Blocks(d) => self.launch.grid[d],
                Special::Lane => (thread % LANES_OF_WARP) as u32,
                Special::Warp => (thread / LANES_OF_WARP) as u32,
                Special::LaneMask(order, or_equal) => lane_mask(thread % LANES_OF_WARP, order, or_equal),
                Special::DynamicShared => self.launch.dynamic_shared as u32,
            });
        }
    }

    fn reset_clocks(&mut self) {
        for (number, thread) in self.threads.iter_mut().enumerate() {
            thread.heard = [0; LANES_OF_WARP];
            thread.heard[number % LANES_OF_WARP] = 1;
        }
    }

    /// Releases a barrier that all its threads have reached. If there is none, returns the fault of the waiting
    /// threads.
    fn pass_barrier(&mut self) -> Result<Option<Fault>, Fault> {
        let waiting = |status: ThreadStatus| match status {
            ThreadStatus::AtBarrier { id, count, aligned } => Some((id, count, aligned)),
            _ => None,
        };
        let first = self.threads.iter().position(|thread| waiting(thread.status).is_some()).unwrap_or(0);
        let mut problem = None;
        for number in first..self.threads.len() {
            let Some((id, count, aligned)) = waiting(self.threads[number].status) else { continue };
            let here = |thread: &Thread| waiting(thread.status).is_some_and(|(other, _, _)| other == id);
            let arrived = self.threads.iter().filter(|thread| here(thread)).count();
            let wanted = if count == 0 { self.threads.len() } else { count as usize };
            if arrived != wanted {
                problem.get_or_insert((number, id, arrived, wanted));
                continue;
            }
            if aligned {
                self.check_aligned(number, id)?;
            }
            let mut passing = Vec::new();
            for (number, thread) in self.threads.iter_mut().enumerate() {
                if matches!(thread.status, ThreadStatus::AtBarrier { id: other, .. } if other == id) {
                    thread.status = ThreadStatus::Ready;
                    thread.at += 1;
                    passing.push(number);
                }
            }
            // Threads that do not take part in the barrier are treated as ordered as well. So races with them may be
            // missed, unless the kernel is asynchronous, where vector clocks of agents are used.
            self.memory.segments += 1;
            self.reset_clocks();
            if self.kernel.is_asynchronous {
                self.meet(&passing);
                self.went_on();
            }
            return Ok(None);
        }
        let (number, id, arrived, wanted) = problem.unwrap_or((0, 0, 0, 0));
        let absent = self
            .threads
            .iter()
            .position(|thread| !matches!(thread.status, ThreadStatus::AtBarrier { id: other, .. } if other == id));
        let absent = absent.map_or_else(String::new, |absent| match self.threads[absent].status {
            ThreadStatus::Done => format!("; thread {absent} has ended"),
            _ => format!("; thread {absent} waits at PTX line {}", self.line(absent)),
        });
        let message = format!("barrier {id} waits for {wanted} threads, and only {arrived} come{absent}");
        Ok(Some(Fault::new(number, Class::Synchronization, message)))
    }

    /// Synchronizes the knowledge of threads: each learns the union.
    pub(super) fn meet(&mut self, threads: &[usize]) {
        let mut together = Knowledge::default();
        threads.iter().for_each(|&thread| together.join(&self.threads[thread].knows));
        for &thread in threads {
            self.threads[thread].knows.clone_from(&together);
            self.threads[thread].knows.tick(thread);
        }
    }

    /// Checks that all threads of a warp have reached the same barrier instruction.
    fn check_aligned(&self, number: usize, id: u64) -> Result<(), Fault> {
        let at_barrier = |thread: usize| match self.threads[thread].status {
            ThreadStatus::AtBarrier { id: other, .. } => other == id,
            _ => false,
        };
        for thread in number..self.threads.len() {
            let first = thread / LANES_OF_WARP * LANES_OF_WARP;
            if at_barrier(thread) && at_barrier(first) && self.threads[thread].at != self.threads[first].at {
                let message = format!(
                    "threads of a warp wait at different barriers, of which one is at PTX line {}",
                    self.line(first)
                );
                return Err(Fault::new(thread, Class::Synchronization, message));
            }
        }
        Ok(())
    }

    pub(super) fn line(&self, thread: usize) -> u32 {
        self.kernel.lines.get(self.threads[thread].at as usize).copied().unwrap_or(0)
    }

    /// Converts a fault to a finding; `starts` are the first segments of blocks, to name the block of a race.
    pub fn finding(&self, fault: Fault, starts: &[(u64, u64)]) -> Finding {
        let mut problem = fault.problem;
        if let Some((thread, segment)) = fault.other {
            let index = starts.partition_point(|(start, _)| *start <= segment).saturating_sub(1);
            let block = starts.get(index).map_or([0; 3], |(_, number)| coordinates(*number, self.launch.grid));
            let thread = coordinates(thread, self.launch.block);
            problem.message += &format!(
                " by thread ({}, {}, {}) of block ({}, {}, {})",
                thread[0], thread[1], thread[2], block[0], block[1], block[2]
            );
        }
        Finding {
            problem,
            kernel: self.kernel.name.clone(),
            block: self.number,
            thread: coordinates(fault.thread as u64, self.launch.block),
            line: self.line(fault.thread),
        }
    }

    /// Reads for a lane in a collective load, from its own address or that of another lane.
    pub(super) fn read_for(&mut self, number: usize, place: &MemoryOperand, address: u64) -> Result<u64, Fault> {
        let Block { kernel, launch, memory, shared, threads, since, first, .. } = self;
        let mut reach = threads[number].reach(number, (kernel, launch), (memory, shared), (*since, *first));
        let read = reach.read(place, address);
        let doubt = reach.doubt;
        threads[number].doubt = doubt;
        read.map_err(|(problem, other)| Fault { thread: number, problem, other })
    }

    /// Runs a thread until it waits or ends. `base` is the index of its first slot.
    fn run_thread(&mut self, number: usize, base: usize) -> Result<(), Fault> {
        let mut steps = 0;
        self.run_on(number, base, &mut steps)?;
        while let ThreadStatus::AtRequest(request) = self.threads[number].status {
            if self.request(number, request)? {
                self.threads[number].at += 1;
                self.run_on(number, base, &mut steps)?;
            }
        }
        Ok(())
    }

    /// Runs a thread until it waits, ends or has a request; counts its steps.
    fn run_on(&mut self, number: usize, base: usize, steps: &mut u64) -> Result<(), Fault> {
        let Block { kernel, launch, memory, outside, shared, registers, threads, since, first, .. } = self;
        let thread = &mut threads[number];
        let mut at = thread.at as usize;
        let (mut groups, before) = (std::mem::take(&mut thread.marks), *steps);
        let (marks, is_busy) = (&mut Marks { groups: &mut groups, done: thread.done }, thread.is_busy);
        let mut reach = thread.reach(number, (kernel, launch), (memory, shared), (*since, *first));
        let registers = &mut registers[base..base + kernel.image.len()];
        let ended = match is_busy {
            true => execute::<true>((kernel, registers, marks), &mut reach, *outside, &mut at, steps),
            false => execute::<false>((kernel, registers, marks), &mut reach, *outside, &mut at, steps),
        };
        reach.memory.instructions += *steps - before;
        let doubt = reach.doubt;
        (thread.at, thread.doubt, thread.marks) = (at as u32, doubt, groups);
        let (problem, other) = match ended {
            Ok(status) => {
                thread.status = status;
                return Ok(());
            }
            Err(wrong) => wrong,
        };
        Err(Fault { thread: number, problem, other })
    }
}

/// Runs a thread from instruction `at` until it waits, ends or faults there; counts its steps. If `MARKED`, reads of
/// registers of pending wgmma are detected.
fn execute<const MARKED: bool>(
    (kernel, registers, marks): (&Kernel, &mut [u64], &mut Marks<'_>),
    reach: &mut Reach<'_>,
    outside: &mut dyn Outside,
    at: &mut usize,
    steps: &mut u64,
) -> Result<ThreadStatus, InvalidAccess> {
    loop {
        let instruction = &kernel.code[*at];
        *steps += 1;
        if *steps > MOST_STEPS {
            return Err((Problem::new(Class::Endless, "the thread does not come to an end"), None));
        }
        if instruction.guard != ALWAYS && (registers[instruction.guard as usize] & 1 == 1) == instruction.negated {
            *at += 1;
            continue;
        }
        if let Some(doubt) = reach.doubt.take_if(|_| instruction.op.tells_others()) {
            let (wrong, place) = *doubt;
            *at = place;
            return Err(wrong);
        }
        if MARKED {
            marks.pass(kernel, &instruction.op).map_err(|problem| (problem, None))?;
        }
        match instruction.op {
            Op::Move { d, from } => registers[d as usize] = registers[from as usize],
            Op::Alu { run, d, abc: [a, b, c] } => {
                registers[d as usize] = run(registers[a as usize], registers[b as usize], registers[c as usize]);
            }
            Op::Load { ref place, into } => {
                reach.at = *at;
                reach.load(place, into, registers)?;
            }
            Op::Store { ref place, from } => {
                reach.store(place, from, registers)?;
            }
            Op::Branch(target) => {
                *at = target as usize;
                continue;
            }
            Op::Split { from, into, bits } => split(registers[from as usize], kernel.list(into), bits, registers),
            Op::Join { into, from, bits } => registers[into as usize] = join(kernel.list(from), bits, registers),
            Op::Packed { run, d, abc, bits } => {
                registers[d as usize] = packed(run, abc.map(|slot| registers[slot as usize]), bits);
            }
            Op::Lop3 { d, abc, table } => {
                registers[d as usize] = by_table(abc.map(|slot| registers[slot as usize]), table);
            }
            Op::Atomic { ref place, run, d, ab } => {
                let [a, b] = ab.map(|slot| registers[slot as usize]);
                match reach.atomic(place, registers[place.base as usize], |old| run(old, a, b)) {
                    Ok(old) => registers[d as usize] = old,
                    Err(wrong) => return Err(wrong),
                }
            }
            Op::CopyAsync { ref to, ref from, bytes, read } => {
                let address =
                    |place: &MemoryOperand| registers[place.base as usize].wrapping_add(place.offset as i64 as u64);
                let (to, from) = ((to, address(to)), (from, address(from)));
                reach.begin_copy(to, from, (bytes, registers[read as usize] as u32))?;
            }
            Op::EndCopyGroup => reach.end_copy_group(),
            Op::WaitForCopies(pending) => reach.wait_for_copies(pending)?,
            Op::Barrier { id, count, aligned } => {
                let [id, count] = [id, count].map(|slot| registers[slot as usize] & 0xffff_ffff);
                return Ok(ThreadStatus::AtBarrier { id, count, aligned });
            }
            Op::Collective(_) => return Ok(ThreadStatus::AtCollective),
            Op::Request { number, .. } => return Ok(ThreadStatus::AtRequest(number)),
            Op::SetCondition([handle, value]) => {
                set_condition(outside, registers[handle as usize], registers[value as usize] as u32)?;
            }
            Op::Return => return Ok(ThreadStatus::Done),
            Op::Trap => return Err((Problem::new(Class::Trap, "the kernel traps"), None)),
            Op::Nothing => {}
        }
        *at += 1;
    }
}

/// Sets the condition of a conditional graph node.
fn set_condition(outside: &mut dyn Outside, handle: u64, value: u32) -> Result<(), InvalidAccess> {
    if outside.set_condition(handle, value) {
        return Ok(());
    }
    let message = format!("a condition is set that no graph has: handle {handle:#x}");
    Err((Problem::new(Class::Launch, message), None))
}

/// Splits the bits of a register over several registers.
fn split(whole: u64, into: &[Slot], bits: u32, registers: &mut [u64]) {
    for (part, &slot) in into.iter().enumerate() {
        registers[slot as usize] = whole >> (part as u32 * bits) & low(bits);
    }
}

/// Joins the bits of several registers in one.
fn join(from: &[Slot], bits: u32, registers: &[u64]) -> u64 {
    let parts = from.iter().enumerate();
    parts.fold(0, |whole, (part, &slot)| whole | (registers[slot as usize] & low(bits)) << (part as u32 * bits))
}

/// Applies a function to each half of registers.
fn packed(run: Run, [a, b, c]: [u64; 3], bits: u32) -> u64 {
    let half = |shift| run(a >> shift & low(bits), b >> shift & low(bits), c >> shift & low(bits)) & low(bits);
    half(0) | half(bits) << bits
}

fn low(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Computes a bitwise function by its truth table.
fn by_table([a, b, c]: [u64; 3], table: u8) -> u64 {
    (0..8u8).filter(|row| table >> row & 1 == 1).fold(0, |result, row| {
        let pick = |value: u64, bit: u8| if row >> bit & 1 == 1 { value } else { !value };
        result | pick(a, 2) & pick(b, 1) & pick(c, 0)
    })
}

fn lane_mask(lane: usize, order: Ordering, or_equal: bool) -> u32 {
    let holds = |other: &usize| other.cmp(&lane) == order || (or_equal && *other == lane);
    (0..LANES_OF_WARP).filter(holds).fold(0, |mask, lane| mask | 1 << lane)
}
