//! Result of buffer assignment: allocations, slices, live ranges.

use std::collections::HashMap;

use xla_hlo::entity::EntityId;
use xla_hlo::{CompId, Error, InstrId, ParameterLeaf, Result};

use crate::analysis::alias::ValueRef;

/// An allocation of a [`BufferAssignment`]; an index into [`BufferAssignment::allocations`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationId(u32);

impl EntityId for AllocationId {
    fn from_index(index: usize) -> Self {
        AllocationId(u32::try_from(index).expect("a module has fewer than 2^32 allocations"))
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for AllocationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a{}", self.0)
    }
}

impl std::fmt::Debug for AllocationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// A range of bytes of an allocation. Two slices of an assignment are equal, disjoint, or used at different times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Whose bytes.
    pub allocation: AllocationId,
    /// First byte; a multiple of the allocation's alignment.
    pub offset: usize,
    /// Bytes of the array, unpacked, tiles and padding included (`ArrayShape::padded_byte_size`); 0 for empty arrays.
    pub size: usize,
}

impl Slice {
    /// Whether the two have a byte in common.
    pub fn overlaps(&self, other: &Slice) -> bool {
        self.allocation == other.allocation
            && self.offset < other.offset.saturating_add(other.size)
            && other.offset < self.offset.saturating_add(self.size)
    }
}

/// Provider of an allocation's memory, and the permitted accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationKind {
    /// A leaf of an entry parameter, provided by the caller.
    Parameter {
        /// Leaf of a parameter.
        leaf: ParameterLeaf,
        /// Path of the output leaf that lives here too, because `input_output_alias` or a buffer donor says so.
        /// `Some` asks the caller for a donated buffer; with one that is not donated, the runtime must hand in a copy
        /// (or fail where the module says `must-alias`).
        output: Option<Vec<usize>>,
        /// Whether the program writes here. A donated parameter may be written without being an output.
        written: bool,
    },
    /// A leaf of the entry's result, not shared with a parameter; allocated for each execution. Until the result is
    /// written, other values may live here.
    Output {
        /// Path into the result.
        path: Vec<usize>,
    },
    /// A leaf of a constant instruction; filled once when the program is loaded and never written.
    Constant {
        /// The constant instruction and the leaf of its literal.
        value: ValueRef,
    },
    /// Scratch memory of one execution, shared by many values: those that found no room in the memory of results. One
    /// for each memory space that needs some.
    Temporary,
}

/// A block of memory that a program needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Its index.
    pub id: AllocationId,
    /// Its provider.
    pub kind: AllocationKind,
    /// Bytes; may be 0.
    pub size: usize,
    /// Alignment of the first byte that slices rely on: [`BufferOptions::alignment`].
    pub alignment: usize,
    /// `S(n)` of the layouts of the values in it; 0 is the device's default memory.
    pub memory_space: i64,
}

/// Place of a leaf of the entry's result when the program ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSlice {
    /// Path into the result; empty for a result that is not a tuple.
    pub path: Vec<usize>,
    /// Its slice: the whole of an [`AllocationKind::Output`] or [`AllocationKind::Parameter`] allocation.
    pub slice: Slice,
    /// The parameter whose buffer this is, if it is one.
    pub parameter: Option<ParameterLeaf>,
}

/// Demands of a target on an assignment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BufferOptions {
    /// Alignment in bytes of allocations and of values inside the temporary allocation; a power of two.
    pub alignment: usize,
    /// Bytes that one execution may need in all, arguments and results included; more is an error.
    pub memory_bytes: Option<u64>,
    /// For that many steps of the schedule after its last use, the place of a temporary value is given to no other one.
    /// Instructions whose values share memory cannot run at the same time, so this is for devices with several streams:
    /// branches that follow each other in the schedule may run side by side, at the cost of memory. Ignored where
    /// memory does not suffice.
    pub reuse_after: u32,
    /// Run [`verify_assignment`](super::verify_assignment) on the product. On in debug builds.
    pub verify: bool,
}

impl Default for BufferOptions {
    fn default() -> Self {
        BufferOptions { alignment: 64, memory_bytes: None, reuse_after: 0, verify: cfg!(debug_assertions) }
    }
}

/// A value with memory of its own: where it is and during which steps it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveValue {
    /// The leaf that defines it; for the state of a loop, the leaf of the while instruction.
    pub value: ValueRef,
    /// For people: `%name{path} f32[8,8]` in its computation.
    pub name: String,
    /// Its slice.
    pub slice: Slice,
    /// The step that writes it, an index into [`BufferAssignment::steps`].
    pub from: usize,
    /// The last step that needs it.
    pub until: usize,
}

/// The moment at which most temporary bytes are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The step, an index into [`BufferAssignment::steps`].
    pub step: usize,
    /// Bytes of all values that are needed then, each rounded up to the alignment but one of each memory space: no
    /// packing can do with less.
    pub bytes: usize,
    /// Indices into [`BufferAssignment::values`] of one value for each piece of memory, largest first.
    pub values: Vec<usize>,
}

/// Place of each leaf of each executed instruction. Made by [`assign_buffers`](super::assign_buffers).
#[derive(Clone, Debug)]
pub struct BufferAssignment {
    pub(super) allocations: Vec<Allocation>,
    pub(super) leaves: HashMap<(CompId, InstrId), Vec<LeafSlice>>,
    pub(super) outputs: Vec<OutputSlice>,
    pub(super) values: Vec<LiveValue>,
    pub(super) steps: Vec<(CompId, InstrId)>,
    pub(super) step_names: Vec<String>,
    pub(super) peak: Peak,
    pub(super) module_name: String,
}

/// A leaf's path and its slice; tokens and opaque values have none.
pub(super) type LeafSlice = (Vec<usize>, Option<Slice>);

impl BufferAssignment {
    /// All allocations: parameters, constants, outputs, then temporaries, each index being the id.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }

    /// One allocation.
    pub fn allocation(&self, id: AllocationId) -> &Allocation {
        &self.allocations[id.index()]
    }

    /// The slice of the leaf at `path` (empty for arrays) of an executed instruction. Fails for leaves without memory
    /// (tokens, tuples) and for instructions that are not executed: [`Error::Internal`].
    pub fn slice(&self, computation: CompId, instruction: InstrId, path: &[usize]) -> Result<Slice> {
        let leaf = self.leaves(computation, instruction)?.iter().find(|(p, _)| p == path);
        leaf.and_then(|(_, slice)| *slice).ok_or_else(|| {
            Error::internal(format!(
                "{instruction} of {computation} has no array at {path:?}, so it has no buffer there"
            ))
        })
    }

    /// All leaves of an executed instruction, depth first, each with its path; tokens and opaque values have no slice.
    pub fn leaves(&self, computation: CompId, instruction: InstrId) -> Result<&[LeafSlice]> {
        self.leaves.get(&(computation, instruction)).map(Vec::as_slice).ok_or_else(|| {
            Error::internal(format!("{instruction} of {computation} is not executed, so it has no buffers"))
        })
    }

    /// The array leaves of the entry's result, depth first.
    pub fn output_slices(&self) -> &[OutputSlice] {
        &self.outputs
    }

    /// The allocation of a leaf of an entry parameter; `None` for leaves without memory.
    pub fn parameter_allocation(&self, leaf: &ParameterLeaf) -> Option<&Allocation> {
        self.allocations.iter().find(|a| matches!(&a.kind, AllocationKind::Parameter { leaf: l, .. } if l == leaf))
    }

    /// Bytes of all temporary allocations.
    pub fn temp_bytes(&self) -> usize {
        let temporary = self.allocations.iter().filter(|a| a.kind == AllocationKind::Temporary);
        temporary.map(|a| a.size).sum()
    }

    /// Bytes of all allocations: the memory of one execution, arguments and results included.
    pub fn total_bytes(&self) -> usize {
        self.allocations.iter().map(|a| a.size).fold(0, usize::saturating_add)
    }

    /// Values that have memory, by when they are written.
    pub fn values(&self) -> &[LiveValue] {
        &self.values
    }

    /// The instructions that do something, in order; those of loops and branches inside the instruction that runs them.
    pub fn steps(&self) -> &[(CompId, InstrId)] {
        &self.steps
    }

    /// Peak of temporary memory, with the values alive then.
    pub fn peak(&self) -> &Peak {
        &self.peak
    }
}
