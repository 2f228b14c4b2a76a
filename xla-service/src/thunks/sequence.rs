//! Thunk sequence, as data.

use std::collections::BTreeMap;

use xla_hlo::{ArrayShape, CompId, InstrId};
use xla_passes::buffers::Slice;

use super::{LibraryOp, LibraryRef};

/// A sequence of thunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThunkSequence {
    /// In the order of the schedule. Thunks on one stream run in this order; others by [`Thunk::waits`].
    pub thunks: Vec<Thunk>,
    /// Streams that begin by waiting for earlier work of the sequence's own stream; see
    /// [`streams`](super::streams).
    pub forks: Vec<StreamId>,
    /// Thunks of other streams that the sequence's own stream waits for at the end.
    pub joins: Vec<ThunkId>,
}

/// The number of a thunk, unique in its module, nested sequences included. Numbers grow in the order of the schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThunkId(pub u32);

/// The number of a stream; 0 is the one the program was launched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// One step: an instruction that does something, where it reads and where it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thunk {
    /// Its number.
    pub id: ThunkId,
    /// The computation of the instruction that it carries out.
    pub computation: CompId,
    /// That instruction.
    pub instruction: InstrId,
    /// The instruction's name, for people.
    pub name: String,
    /// Its kind.
    pub kind: ThunkKind,
    /// Array leaves of the operands: one operand after the other, each depth first.
    pub operands: Vec<ArraySlice>,
    /// Array leaves of the result, depth first.
    pub results: Vec<ArraySlice>,
    /// Whether it does more than write results, as some custom calls and random number generators do. Such thunks keep
    /// their order.
    pub has_effects: bool,
    /// The stream it runs on.
    pub stream: StreamId,
    /// Thunks of other streams that must be done before, beyond those before it on its own stream.
    pub waits: Vec<ThunkId>,
}

/// An array in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySlice {
    /// Place of its bytes.
    pub slice: Slice,
    /// Its shape, with layout.
    pub shape: ArrayShape,
}

/// A kernel of the backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelRef {
    /// Index into the backend's table of kernels. Equal kernels may share one.
    pub index: u32,
    /// Its name.
    pub name: String,
}

/// Kind of a thunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThunkKind {
    /// Launches a kernel of the backend on operands and results.
    Kernel(KernelRef),
    /// Calls a library of the backend on operands and results.
    LibraryCall(LibraryRef),
    /// Copies the bytes of operand 0 to result 0, which have the same size and never overlap in part.
    Copy,
    /// Runs `condition`, then, while `predicate` is true, `body` and `condition` again. The state stays where it is:
    /// operands, results, and the parameters and roots of both computations are the same slices.
    While {
        /// Computes the predicate.
        condition: ThunkSequence,
        /// Computes the next state, in place.
        body: ThunkSequence,
        /// One byte, 0 or 1.
        predicate: Slice,
        /// Number of iterations, if it is known; then the condition need not run.
        trip_count: Option<u64>,
    },
    /// Runs one of the branches. Each writes the results.
    Conditional {
        /// Kind of selector; the slice is of operand 0.
        selector: Selector,
        /// Place of the selector.
        slice: Slice,
        /// At least one.
        branches: Vec<ThunkSequence>,
    },
    /// Brings operands to the host, calls the handler of the custom call's target there, and writes the results back.
    CustomCall,
    /// Brings operands to the host, evaluates the instruction there, and writes the results back.
    HostFallback,
}

impl ThunkKind {
    /// Whether the device does it without the host: a kernel, a library call, a copy.
    pub fn is_launch(&self) -> bool {
        match self {
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => true,
            ThunkKind::While { .. }
            | ThunkKind::Conditional { .. }
            | ThunkKind::CustomCall
            | ThunkKind::HostFallback => false,
        }
    }
}

/// Selector of a conditional's branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// A byte: 1 chooses branch 0, 0 chooses branch 1.
    Predicate,
    /// A little-endian 32-bit signed integer: the branch's number; the last branch if there is none of that number.
    Index,
}

impl Selector {
    /// The bytes that it has.
    pub fn byte_size(self) -> usize {
        match self {
            Selector::Predicate => 1,
            Selector::Index => 4,
        }
    }

    /// The number of the branch that those bytes choose of `branches`.
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
    /// Library calls, by their operation.
    pub library_calls: BTreeMap<LibraryOp, usize>,
    /// Custom calls by a handler on the host.
    pub custom_calls: usize,
    /// Copies.
    pub copies: usize,
    /// Loops and conditionals.
    pub control_flow: usize,
    /// Names of instructions that the host evaluates.
    pub fallbacks: Vec<String>,
}

impl ThunkSequence {
    /// All thunks, nested ones after the one that contains them.
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

    /// Whether the sequence itself, nested ones aside, uses no other stream than its own. That is 0, or that
    /// of the loop or conditional it belongs to.
    pub fn is_on_one_stream(&self) -> bool {
        // Another stream begins as a fork, or after a thunk that it waits for.
        self.forks.is_empty() && self.thunks.iter().all(|thunk| thunk.waits.is_empty())
    }

    /// The thunk of that number, wherever it is nested.
    pub fn find(&self, id: ThunkId) -> Option<&Thunk> {
        self.walk().find(|thunk| thunk.id == id)
    }

    /// Counts of instructions by where they run.
    pub fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        for thunk in self.walk() {
            match &thunk.kind {
                ThunkKind::Kernel(_) => coverage.kernels += 1,
                ThunkKind::LibraryCall(call) => *coverage.library_calls.entry(call.op).or_default() += 1,
                ThunkKind::Copy => coverage.copies += 1,
                ThunkKind::While { .. } | ThunkKind::Conditional { .. } => coverage.control_flow += 1,
                ThunkKind::CustomCall => coverage.custom_calls += 1,
                ThunkKind::HostFallback => coverage.fallbacks.push(thunk.name.clone()),
            }
        }
        coverage
    }
}

impl ThunkKind {
    /// Sequences inside, to be changed, in the order of [`ThunkKind::nested`].
    pub(super) fn nested_mut(&mut self) -> Vec<&mut ThunkSequence> {
        match self {
            ThunkKind::While { condition, body, .. } => vec![condition, body],
            ThunkKind::Conditional { branches, .. } => branches.iter_mut().collect(),
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => Vec::new(),
            ThunkKind::CustomCall | ThunkKind::HostFallback => Vec::new(),
        }
    }

    /// Sequences inside, in the order they would first run.
    pub fn nested(&self) -> Vec<&ThunkSequence> {
        match self {
            ThunkKind::While { condition, body, .. } => vec![condition, body],
            ThunkKind::Conditional { branches, .. } => branches.iter().collect(),
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => Vec::new(),
            ThunkKind::CustomCall | ThunkKind::HostFallback => Vec::new(),
        }
    }
}

/// Whether a device with [`DeviceLoops`](super::DeviceLoops) can run a sequence without the host: from a recording,
/// which is one stream. `conditionals` says whether it has [`DeviceConditionals`](super::DeviceConditionals) as well.
pub(super) fn can_be_recorded(sequence: &ThunkSequence, conditionals: bool) -> bool {
    let can_be = |sequence: &ThunkSequence| can_be_recorded(sequence, conditionals);
    sequence.is_on_one_stream()
        && sequence.thunks.iter().all(|thunk| match &thunk.kind {
            // Thunks with effects, such as drawing random numbers, are launched anew each time.
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => !thunk.has_effects,
            ThunkKind::While { condition, body, .. } => can_be(condition) && can_be(body),
            ThunkKind::Conditional { branches, .. } => conditionals && branches.iter().all(can_be),
            ThunkKind::CustomCall | ThunkKind::HostFallback => false,
        })
}
