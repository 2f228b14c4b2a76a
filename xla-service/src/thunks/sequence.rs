//! Thunk sequence: launches, copies and control flow as data.

use std::collections::BTreeMap;

use xla_hlo::{ArrayShape, CompId, InstrId};
use xla_passes::buffers::Slice;

use super::{LibraryOp, LibraryRef};

/// Sequence of thunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThunkSequence {
    /// Thunks in the order of the schedule. Thunks on one stream run in this order; others are ordered by
    /// [`Thunk::waits`].
    pub thunks: Vec<Thunk>,
    /// Streams that start by waiting for earlier work of the sequence's own stream; see [`streams`](super::streams).
    pub forks: Vec<StreamId>,
    /// Thunks of other streams that the sequence's own stream waits for at the end.
    pub joins: Vec<ThunkId>,
}

/// Number of a thunk, unique in its module including nested sequences. Numbers increase in the order of the schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThunkId(pub u32);

/// Number of a stream; 0 is the stream that the program was launched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// One step of a program: an instruction that does work, with the slices that it reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thunk {
    /// Number of the thunk.
    pub id: ThunkId,
    /// Computation that contains the instruction.
    pub computation: CompId,
    /// Instruction that the thunk executes.
    pub instruction: InstrId,
    /// Name of the instruction, for display.
    pub name: String,
    /// Kind of the thunk.
    pub kind: ThunkKind,
    /// Array leaves of the operands: operand by operand, each depth first.
    pub operands: Vec<ArraySlice>,
    /// Array leaves of the result, depth first.
    pub results: Vec<ArraySlice>,
    /// Whether the thunk has side effects beyond writing its results, as collectives, some custom calls and random
    /// number generators do. Such thunks keep their order.
    pub has_effects: bool,
    /// Stream that the thunk runs on.
    pub stream: StreamId,
    /// Thunks of other streams that must be done before this one. Earlier thunks on its own stream are implied.
    pub waits: Vec<ThunkId>,
}

/// Array in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySlice {
    /// Location of its bytes.
    pub slice: Slice,
    /// Shape, with layout.
    pub shape: ArrayShape,
}

/// Kernel of the backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelRef {
    /// Index into the backend's table of kernels. Equal kernels may share one entry.
    pub index: u32,
    /// Name of the kernel.
    pub name: String,
}

/// Kind of a thunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThunkKind {
    /// Launches a kernel of the backend on operands and results.
    Kernel(KernelRef),
    /// Calls a library of the backend on operands and results.
    LibraryCall(LibraryRef),
    /// Copies the bytes of operand 0 to result 0, which have equal sizes and never overlap partially.
    Copy,
    /// Runs `condition`; while `predicate` is true, runs `body` and `condition` again. The state is updated in place:
    /// operands, results, and the parameters and roots of both computations are the same slices.
    While {
        /// Computes the predicate.
        condition: ThunkSequence,
        /// Computes the next state, in place.
        body: ThunkSequence,
        /// One byte, 0 or 1.
        predicate: Slice,
        /// Number of iterations, if known; the condition then need not run.
        trip_count: Option<u64>,
    },
    /// Runs one of the branches; each branch writes the results.
    Conditional {
        /// Kind of the selector; `slice` is its location in operand 0.
        selector: Selector,
        /// Location of the selector.
        slice: Slice,
        /// Branches, at least one.
        branches: Vec<ThunkSequence>,
    },
    /// Executes a collective, or returns the id of a replica or partition. With the name of a library's operation, the
    /// [launcher](super::Launcher::collective) may execute it. Otherwise the service copies operands to the host,
    /// exchanges them with the other devices of the launch, and copies the results back.
    Collective(Option<String>),
    /// Copies operands to the host, calls the handler of the custom call's target, and copies the results back.
    CustomCall,
    /// Copies operands to the host, evaluates the instruction there, and copies the results back.
    HostFallback,
}

impl ThunkKind {
    /// Whether the device executes it without the host: a kernel, a library call, a copy.
    pub fn is_launch(&self) -> bool {
        match self {
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => true,
            ThunkKind::While { .. }
            | ThunkKind::Conditional { .. }
            | ThunkKind::Collective(_)
            | ThunkKind::CustomCall
            | ThunkKind::HostFallback => false,
        }
    }
}

/// Selector of a conditional's branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Byte: 1 selects branch 0, 0 selects branch 1.
    Predicate,
    /// Little-endian 32-bit signed integer: the number of the branch; out-of-range numbers select the last branch.
    Index,
}

impl Selector {
    /// Returns the size of the selector in bytes.
    pub fn byte_size(self) -> usize {
        match self {
            Selector::Predicate => 1,
            Selector::Index => 4,
        }
    }

    /// Returns the number of the branch, out of `branches`, that these bytes select.
    pub fn branch(self, bytes: [u8; 4], branches: usize) -> usize {
        let last = branches.saturating_sub(1);
        match self {
            Selector::Predicate => usize::from(bytes[0] == 0).min(last),
            Selector::Index => usize::try_from(i32::from_le_bytes(bytes)).map_or(last, |index| index.min(last)),
        }
    }
}

/// Counts of instructions by where they run; see [`ThunkSequence::coverage`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Kernels.
    pub kernels: usize,
    /// Library calls, by operation.
    pub library_calls: BTreeMap<LibraryOp, usize>,
    /// Collectives among several devices, and ids of replicas and partitions, that the service executes.
    pub collectives: usize,
    /// Collectives among several devices that a library of the backend executes.
    pub library_collectives: usize,
    /// Custom calls with a handler on the host.
    pub custom_calls: usize,
    /// Copies.
    pub copies: usize,
    /// Loops and conditionals.
    pub control_flow: usize,
    /// Names of instructions that the host evaluates.
    pub fallbacks: Vec<String>,
}

impl ThunkSequence {
    /// Returns all thunks, nested ones after the thunk that contains them.
    pub fn walk(&self) -> impl Iterator<Item = &Thunk> {
        let mut stack: Vec<&Thunk> = self.thunks.iter().rev().collect();
        std::iter::from_fn(move || {
            let thunk = stack.pop()?;
            for nested in thunk.kind.nested().into_iter().rev() {
                stack.extend(nested.thunks.iter().rev());
            }
            Some(thunk)
        })
    }

    /// Whether the sequence itself, ignoring nested sequences, uses only its own stream: 0, or the stream of the loop
    /// or conditional that contains it.
    pub fn is_on_one_stream(&self) -> bool {
        // Another stream starts either as a fork or with a wait.
        self.forks.is_empty() && self.thunks.iter().all(|thunk| thunk.waits.is_empty())
    }

    /// Returns the thunk with this number, at any nesting depth.
    pub fn find(&self, id: ThunkId) -> Option<&Thunk> {
        self.walk().find(|thunk| thunk.id == id)
    }

    /// Counts instructions by where they run.
    pub fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        for thunk in self.walk() {
            match &thunk.kind {
                ThunkKind::Kernel(_) => coverage.kernels += 1,
                ThunkKind::LibraryCall(call) => *coverage.library_calls.entry(call.op).or_default() += 1,
                ThunkKind::Copy => coverage.copies += 1,
                ThunkKind::While { .. } | ThunkKind::Conditional { .. } => coverage.control_flow += 1,
                ThunkKind::Collective(None) => coverage.collectives += 1,
                ThunkKind::Collective(Some(_)) => coverage.library_collectives += 1,
                ThunkKind::CustomCall => coverage.custom_calls += 1,
                ThunkKind::HostFallback => coverage.fallbacks.push(thunk.name.clone()),
            }
        }
        coverage
    }
}

impl ThunkKind {
    /// Returns the nested sequences for modification, in the order of [`ThunkKind::nested`].
    pub(super) fn nested_mut(&mut self) -> Vec<&mut ThunkSequence> {
        match self {
            ThunkKind::While { condition, body, .. } => vec![condition, body],
            ThunkKind::Conditional { branches, .. } => branches.iter_mut().collect(),
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => Vec::new(),
            ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => Vec::new(),
        }
    }

    /// Returns the nested sequences, in the order of their first execution.
    pub fn nested(&self) -> Vec<&ThunkSequence> {
        match self {
            ThunkKind::While { condition, body, .. } => vec![condition, body],
            ThunkKind::Conditional { branches, .. } => branches.iter().collect(),
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => Vec::new(),
            ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => Vec::new(),
        }
    }
}

/// Whether a device with [`DeviceLoops`](super::DeviceLoops) can run a sequence without the host, from a recording,
/// which has only one stream. `conditionals` states whether it also has
/// [`DeviceConditionals`](super::DeviceConditionals).
pub(super) fn can_be_recorded(sequence: &ThunkSequence, conditionals: bool) -> bool {
    let can_be = |sequence: &ThunkSequence| can_be_recorded(sequence, conditionals);
    sequence.is_on_one_stream()
        && sequence.thunks.iter().all(|thunk| match &thunk.kind {
            // Thunks with effects, such as drawing random numbers, must be launched anew each time.
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => !thunk.has_effects,
            ThunkKind::While { condition, body, .. } => can_be(condition) && can_be(body),
            ThunkKind::Conditional { branches, .. } => conditionals && branches.iter().all(can_be),
            ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => false,
        })
}
