//! Roofline model: a lower bound of a kernel's time, from its machine code, its launch and the machine's rates.

use std::collections::BTreeSet;
use std::fmt;

use crate::class::{Class, Space, class, weight};
use crate::kernel::Kernel;
use crate::loops::{Loop, loops};
use crate::rates::{LAUNCH, Rates};
use crate::sass::Function;
use crate::thread::{Launch, Trace, follow};

/// Resource that bounds a kernel's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The launch itself.
    Launch,
    Memory,
    /// Issue slots.
    Instructions,
    /// Special functions.
    Special,
    Tensor,
}

/// Bounds and their words in tables.
const BOUNDS: [(Bound, &str); 5] = [
    (Bound::Launch, "launch"),
    (Bound::Memory, "memory"),
    (Bound::Instructions, "instructions"),
    (Bound::Special, "special"),
    (Bound::Tensor, "tensor"),
];

impl Bound {
    /// Whether instructions take longer than memory and longer than an empty launch.
    pub fn is_of_instructions(self) -> bool {
        matches!(self, Bound::Instructions | Bound::Special)
    }

    pub fn parse(word: &str) -> Option<Bound> {
        BOUNDS.iter().find(|(_, known)| *known == word).map(|(bound, _)| *bound)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = BOUNDS.iter().find(|(bound, _)| bound == self).map_or("", |(_, word)| *word);
        f.pad(word)
    }
}

/// A stretch of machine code: an inner loop, or all of a kernel.
#[derive(Debug, PartialEq)]
pub struct Stretch {
    /// Address of the first instruction.
    pub address: u64,
    /// Trip count of a thread.
    pub turns: u64,
    /// Instructions of a thread over all iterations; then its tensor instructions, special functions and accesses to
    /// local memory.
    pub instructions: u64,
    pub tensor: u64,
    /// Tensor instructions, counted as the `mma.sync` instructions of a single warp with equal work.
    pub tensor_weight: u64,
    pub special: u64,
    pub local: u64,
    /// Maximum number of loads from global memory in flight before the first wait.
    pub loads_in_flight: u64,
    /// Access sizes in bytes of loads from global memory, and of stores.
    pub loads: BTreeSet<u64>,
    pub stores: BTreeSet<u64>,
}

impl Stretch {
    /// Share of tensor instructions, weighted by [`Stretch::tensor_weight`].
    pub fn tensor_share(&self) -> f64 {
        let others = self.instructions - self.tensor;
        self.tensor_weight as f64 / (others + self.tensor_weight).max(1) as f64
    }
}

/// A kernel's estimate.
#[derive(Debug)]
pub struct Estimate {
    /// All of its code.
    pub whole: Stretch,
    /// Its innermost loops, by their places.
    pub loops: Vec<Stretch>,
    /// Whether a trip count depends on data, so that counts and times are lower bounds.
    pub by_data: bool,
    /// Number of jumps that depend on data, whose direction is a guess.
    pub guesses: usize,
    /// Elements of the largest array that all threads together compute or read.
    pub elements: f64,
    /// Instructions of all threads per element.
    pub per_element: f64,
    /// Seconds by each bound, in the order of `BOUNDS`.
    pub seconds: [f64; 5],
}

impl Estimate {
    pub fn new(kernel: &Kernel, function: &Function, rates: &Rates) -> Estimate {
        let loops = loops(function);
        let parts = Part::all(kernel, function, &loops);
        let trace = &parts[0].trace;
        let counts = &trace.counts;
        let all: Vec<usize> = (0..function.code.len()).filter(|&place| counts[place] > 0).collect();
        let whole = stretch(function, counts, &all, 0);
        let inner =
            |l: &Loop| (l.is_innermost && counts[l.header] > 0).then(|| stretch(function, counts, &l.body, l.header));
        let totals = Totals::new(kernel, function, &parts, rates);
        let elements = totals.elements(kernel);
        Estimate {
            elements,
            per_element: totals.instructions * f64::from(kernel.launch.blocks) / elements,
            seconds: totals.seconds(kernel, rates),
            loops: loops.iter().filter_map(inner).collect(),
            whole,
            by_data: parts.iter().any(|part| part.trace.by_data),
            guesses: trace.guesses.len(),
        }
    }

    /// Innermost loop with the most executed instructions; the whole code of a kernel without loops.
    pub fn hottest(&self) -> &Stretch {
        self.loops.iter().max_by_key(|l| l.instructions).unwrap_or(&self.whole)
    }

    /// Largest time in seconds, and its resource.
    pub fn bound(&self) -> (Bound, f64) {
        let pairs = BOUNDS.iter().map(|(bound, _)| *bound).zip(self.seconds);
        pairs.fold((Bound::Launch, 0.0), |most, pair| if pair.1 > most.1 { pair } else { most })
    }
}

/// A kernel, with its estimate where machine code was disassembled.
#[derive(Default)]
pub struct Measured {
    pub kernel: Kernel,
    /// Its machine code, if it is to be estimated.
    pub code: Vec<u8>,
    pub estimate: Option<Estimate>,
}

impl Measured {
    pub fn spills(&self) -> bool {
        self.kernel.spill_bytes > 0 || self.estimate.as_ref().is_some_and(|estimate| estimate.whole.local > 0)
    }
}

fn stretch(function: &Function, counts: &[u64], places: &[usize], start: usize) -> Stretch {
    let mut found = Stretch {
        address: function.code.get(start).map_or(0, |instruction| instruction.address),
        turns: counts.get(start).copied().unwrap_or(0),
        instructions: 0,
        tensor: 0,
        tensor_weight: 0,
        special: 0,
        local: 0,
        loads_in_flight: loads_in_flight(function, counts, places),
        loads: BTreeSet::new(),
        stores: BTreeSet::new(),
    };
    for &place in places.iter().filter(|&&place| counts[place] > 0) {
        let count = counts[place];
        found.instructions += count;
        match class(&function.code[place]) {
            Class::Load(Space::Global, bytes) => drop(found.loads.insert(bytes)),
            Class::Store(Space::Global, bytes) => drop(found.stores.insert(bytes)),
            Class::Load(Space::Local, _) | Class::Store(Space::Local, _) => found.local += count,
            Class::Load(Space::Shared, _) | Class::Store(Space::Shared, _) => {}
            Class::BoxLoad | Class::BoxStore | Class::Other => {}
            Class::Tensor(kind, each) => {
                found.tensor += count;
                found.tensor_weight += count * weight(kind, each);
            }
            Class::Special => found.special += count,
        }
    }
    found
}

/// Threads of a block, represented by one thread that was followed.
struct Part {
    trace: Trace,
    threads: f64,
    warps: f64,
}

impl Part {
    /// All threads of a block take one path, except in kernels with TMA, which one producer thread issues: there each
    /// warp has its own path.
    fn all(kernel: &Kernel, function: &Function, loops: &[Loop]) -> Vec<Part> {
        let has_boxes = function.code.iter().any(|instruction| class(instruction) == Class::BoxLoad);
        let each = if has_boxes { 32 } else { kernel.launch.threads.max(1) };
        let part = |thread: u32| {
            let threads = each.min(kernel.launch.threads - thread);
            let trace = follow(function, loops, Launch { thread, ..kernel.launch });
            Part { trace, threads: threads.into(), warps: threads.div_ceil(32).into() }
        };
        (0..kernel.launch.threads.max(1)).step_by(each as usize).map(part).collect()
    }
}

/// Work of a block, and bytes of a launch.
#[derive(Default)]
struct Totals {
    /// Instructions of all threads.
    instructions: f64,
    /// Instructions and special functions of all warps, and their seconds on tensor cores that they have for
    /// themselves.
    issued: f64,
    special: f64,
    tensor: f64,
    /// Bytes that all threads load from and store to global memory, at most the sizes of the arrays: repeated reads hit
    /// a cache, and a kernel may read a part of an array.
    read: f64,
    written: f64,
}

impl Totals {
    fn new(kernel: &Kernel, function: &Function, parts: &[Part], rates: &Rates) -> Totals {
        let mut totals = Totals::default();
        parts.iter().for_each(|part| totals.add(function, part, rates));
        // The sizes of TMA boxes are not in the code: all arrays are assumed to be copied whole.
        let has = |wanted: Class| function.code.iter().any(|instruction| class(instruction) == wanted);
        if has(Class::BoxLoad) {
            totals.read = f64::INFINITY;
        }
        if has(Class::BoxStore) {
            totals.written = f64::INFINITY;
        }
        let blocks = f64::from(kernel.launch.blocks);
        totals.read = (totals.read * blocks).min(kernel.bytes_read as f64);
        totals.written = (totals.written * blocks).min(kernel.bytes_written as f64);
        totals
    }

    /// Adds the work of some threads of a block.
    fn add(&mut self, function: &Function, part: &Part, rates: &Rates) {
        for (instruction, &count) in function.code.iter().zip(&part.trace.counts) {
            let (by_threads, by_warps) = (count as f64 * part.threads, count as f64 * part.warps);
            self.instructions += by_threads;
            self.issued += by_warps;
            match class(instruction) {
                Class::Load(Space::Global, bytes) => self.read += by_threads * bytes as f64,
                Class::Store(Space::Global, bytes) => self.written += by_threads * bytes as f64,
                Class::Tensor(kind, each) => self.tensor += by_warps * each as f64 / rates.tensor(kind),
                Class::Special => self.special += by_warps * 32.0,
                Class::Load(..) | Class::Store(..) | Class::BoxLoad | Class::BoxStore | Class::Other => {}
            }
        }
    }

    fn elements(&self, kernel: &Kernel) -> f64 {
        let share = |part: f64, bytes: u64| part / bytes.max(1) as f64;
        let read = kernel.elements_read as f64 * share(self.read, kernel.bytes_read);
        let written = kernel.elements_written as f64 * share(self.written, kernel.bytes_written);
        read.max(written).max(1.0)
    }

    /// Lower bound in seconds of the launch, for each resource.
    fn seconds(&self, kernel: &Kernel, rates: &Rates) -> [f64; 5] {
        // The busiest multiprocessor decides.
        let blocks = u64::from(kernel.launch.blocks).div_ceil(rates.multiprocessors) as f64;
        // A scheduler issues for the warps that it has.
        let issues = rates.issues.min(blocks * f64::from(kernel.launch.threads.div_ceil(32))).max(1.0);
        [
            LAUNCH,
            (self.read + self.written) / rates.bandwidth,
            self.issued * blocks / issues / rates.clock,
            self.special * blocks / rates.specials / rates.clock,
            // Rates of tensor cores are for the whole machine.
            self.tensor * blocks * rates.multiprocessors as f64,
        ]
    }
}

/// Maximum number of loads from global memory whose results no instruction has used yet, in program order.
fn loads_in_flight(function: &Function, counts: &[u64], places: &[usize]) -> u64 {
    let (mut most, mut waiting) = (0, Vec::new());
    for &place in places.iter().filter(|&&place| counts[place] > 0) {
        let instruction = &function.code[place];
        let is_waited_for = |(first, count): &(usize, usize)| {
            let registers = instruction.operands.iter().enumerate().flat_map(|(number, operand)| {
                // The first register is the result of the load itself.
                if number == 0 && operand.starts_with('R') { Vec::new() } else { registers(operand) }
            });
            registers.into_iter().any(|register| (*first..first + count).contains(&register))
        };
        if waiting.iter().any(is_waited_for) || instruction.base() == "DEPBAR" {
            waiting.clear();
        }
        if let Class::Load(Space::Global, bytes) = class(instruction) {
            let first = instruction.operands.first().and_then(|result| registers(result).first().copied());
            // Asynchronous copies have no register.
            let result = if instruction.base() == "LDGSTS" { None } else { first };
            waiting.push(result.map_or((usize::MAX, 0), |first| (first, bytes.div_ceil(4) as usize)));
            most = most.max(waiting.len() as u64);
        }
    }
    most
}

/// The general registers that an operand names.
fn registers(operand: &str) -> Vec<usize> {
    let words = operand.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter_map(|word| word.strip_prefix('R')?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::TensorType;
    use crate::sass;

    fn estimate(text: &str) -> Estimate {
        let kernel = Kernel {
            launch: Launch { blocks: 132 * 64, threads: 128, thread: 0 },
            elements_read: 132 * 64 * 1024,
            bytes_read: 132 * 64 * 4096,
            elements_written: 132 * 64,
            bytes_written: 132 * 64 * 4,
            ..Kernel::default()
        };
        Estimate::new(&kernel, &sass::parse(text).unwrap()[0], &Rates::of("sm_90").unwrap())
    }

    #[test]
    fn a_row_is_estimated_from_its_loop() {
        let estimate = estimate(include_str!("samples/row.sass"));
        let hottest = estimate.hottest();
        assert_eq!((hottest.address, hottest.turns, hottest.instructions), (0x70, 2, 18));
        assert_eq!((hottest.loads_in_flight, hottest.loads.iter().copied().collect::<Vec<_>>()), (1, vec![16]));
        // 7 before the loop, 18 in it, 4 after it, for 8 elements of each thread.
        assert_eq!((estimate.whole.instructions, estimate.whole.special, estimate.whole.local), (29, 1, 0));
        assert!((estimate.per_element - 29.0 / 8.0).abs() < 1e-9, "{}", estimate.per_element);
        assert!(!estimate.by_data);
        let [_, memory, issue, special, tensor] = estimate.seconds;
        let bytes = 132.0 * 64.0 * 4100.0;
        assert!((memory - bytes / 3.35e12).abs() < 1e-12, "{memory}");
        // 64 blocks of 4 warps on each multiprocessor, 4 instructions a cycle.
        assert!((issue - 29.0 * 64.0 / 1.98e9).abs() < 1e-12, "{issue}");
        assert!((special - 2.0 * 256.0 / 1.98e9).abs() < 1e-12, "{special}");
        assert_eq!((tensor, estimate.bound().0), (0.0, Bound::Memory));
    }

    #[test]
    fn boxes_are_all_of_their_arrays_and_products_of_four_warps_weigh_more() {
        let estimate = estimate(include_str!("samples/boxes.sass"));
        let hottest = estimate.hottest();
        assert_eq!((hottest.address, hottest.turns, hottest.tensor, hottest.tensor_weight), (0x130, 32, 64, 64));
        assert!(!estimate.by_data);
        let [_, memory, _, _, tensor] = estimate.seconds;
        let bytes = 132.0 * 64.0 * 4100.0;
        assert!((memory - bytes / 3.35e12).abs() < 1e-12, "{memory}");
        // 64 products of 64 x 8 x 16 by each block.
        let products = 64.0 * 132.0 * 64.0 * 64.0 * 8.0 * 16.0;
        assert!((tensor / (products / Rates::of("sm_90").unwrap().tensor(TensorType::Half)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn spills_are_local_memory() {
        let estimate = estimate(include_str!("samples/spill.sass"));
        assert_eq!((estimate.whole.local, estimate.whole.loads_in_flight), (2, 20));
    }

    #[test]
    fn bounds_have_words() {
        for (bound, word) in BOUNDS {
            assert_eq!((Bound::parse(word), bound.to_string()), (Some(bound), word.to_owned()));
        }
        assert_eq!(Bound::parse("luck"), None);
    }
}
