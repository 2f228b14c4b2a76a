//! Result of buffer assignment: allocations, slices and live ranges.

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

/// A byte range of an allocation. Two slices of an assignment are equal, disjoint, or used at different times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The allocation that contains the bytes.
    pub allocation: AllocationId,
    /// Offset of the first byte; a multiple of the allocation's alignment.
    pub offset: usize,
    /// Size of the array in bytes, unpacked, including tiles and padding (`ArrayShape::padded_byte_size`); 0 for empty
    /// arrays.
    pub size: usize,
}

impl Slice {
    /// Whether the two slices share a byte.
    pub fn overlaps(&self, other: &Slice) -> bool {
        self.allocation == other.allocation
            && self.offset < other.offset.saturating_add(other.size)
            && other.offset < self.offset.saturating_add(self.size)
    }
}

/// Owner of an allocation's memory, and the permitted accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationKind {
    /// A leaf of an entry parameter; the caller provides the memory.
    Parameter {
        /// Leaf of a parameter.
        leaf: ParameterLeaf,
        /// Path of the output leaf that shares this memory because of `input_output_alias` or a buffer donor. `Some`
        /// requires a donated buffer from the caller. If the buffer is not donated, the runtime must pass a copy (or
        /// fail if the module states `must-alias`).
        output: Option<Vec<usize>>,
        /// Whether the program writes to the memory. A donated parameter may be written without being an output.
        written: bool,
    },
    /// A leaf of the entry's result that shares no memory with a parameter; allocated for each execution. Other values
    /// may be stored here until the result is written.
    Output {
        /// Path into the result.
        path: Vec<usize>,
    },
    /// A leaf of a constant instruction; filled once when the program is loaded and never written.
    Constant {
        /// The constant instruction and the leaf of its literal.
        value: ValueRef,
    },
    /// Scratch memory of one execution, shared by all values that do not fit into the memory of results. One allocation
    /// for each memory space that needs it.
    Temporary,
}

/// A block of memory that a program needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Id of the allocation.
    pub id: AllocationId,
    /// Owner of the memory.
    pub kind: AllocationKind,
    /// Size in bytes; may be 0.
    pub size: usize,
    /// Alignment of the first byte that slices require: [`BufferOptions::alignment`].
    pub alignment: usize,
    /// Number `n` of `S(n)` in the layouts of the values in it; 0 is the device's default memory.
    pub memory_space: i64,
}

/// Location of a leaf of the entry's result at the end of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSlice {
    /// Path into the result; empty for a result that is not a tuple.
    pub path: Vec<usize>,
    /// Slice of the leaf: a whole [`AllocationKind::Output`] or [`AllocationKind::Parameter`] allocation.
    pub slice: Slice,
    /// Parameter whose buffer this is, if any.
    pub parameter: Option<ParameterLeaf>,
}

/// Requirements of a target on an assignment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BufferOptions {
    /// Alignment in bytes of allocations and of values inside the temporary allocation; a power of two.
    pub alignment: usize,
    /// Maximum memory of one execution in bytes, including arguments and results. Exceeding it is an error.
    pub memory_bytes: Option<u64>,
    /// Number of schedule steps after the last use of a temporary value during which its memory is not reused.
    /// Instructions whose values share memory cannot run concurrently. This option is for devices with several streams:
    /// at the cost of memory, branches that are adjacent in the schedule may run in parallel. Ignored if memory does
    /// not suffice.
    pub reuse_after: u32,
    /// Whether to run [`verify_assignment`](super::verify_assignment) on the result. On by default in debug builds.
    pub verify: bool,
}

impl Default for BufferOptions {
    fn default() -> Self {
        BufferOptions { alignment: 64, memory_bytes: None, reuse_after: 0, verify: cfg!(debug_assertions) }
    }
}

/// A value with memory of its own: its location and live range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveValue {
    /// Leaf that defines the value; for the state of a loop, the leaf of the while instruction.
    pub value: ValueRef,
    /// Text for reports: `%name{path} f32[8,8]` in its computation.
    pub name: String,
    /// Location of the value.
    pub slice: Slice,
    /// Step that writes the value, an index into [`BufferAssignment::steps`].
    pub from: usize,
    /// Last step that needs the value.
    pub until: usize,
}

/// The step of peak usage of temporary memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Index of the step in [`BufferAssignment::steps`].
    pub step: usize,
    /// Size of all values that are live then, each padded to the alignment except one per memory space. This is a lower
    /// bound for any packing.
    pub bytes: usize,
    /// Indices into [`BufferAssignment::values`], one value for each piece of memory, largest first.
    pub values: Vec<usize>,
}

/// Location of each leaf of each executed instruction. Created by [`assign_buffers`](super::assign_buffers).
#[derive(Clone, Debug)]
pub struct BufferAssignment {
    // Tests of the verifier damage the first two fields.
    #[doc(hidden)]
    pub allocations: Vec<Allocation>,
    #[doc(hidden)]
    pub leaves: HashMap<(CompId, InstrId), Vec<LeafSlice>>,
    pub(super) outputs: Vec<OutputSlice>,
    pub(super) values: Vec<LiveValue>,
    pub(super) steps: Vec<(CompId, InstrId)>,
    pub(super) step_names: Vec<String>,
    pub(super) peak: Peak,
    pub(super) module_name: String,
}

/// Path of a leaf and its slice; `None` for tokens and opaque values.
pub type LeafSlice = (Vec<usize>, Option<Slice>);

impl BufferAssignment {
    /// Returns all allocations: parameters, constants, outputs, then temporaries. Each index is the allocation's id.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }

    /// Returns one allocation.
    pub fn allocation(&self, id: AllocationId) -> &Allocation {
        &self.allocations[id.index()]
    }

    /// Returns the slice of the leaf at `path` (empty for arrays) of an executed instruction. Returns
    /// [`Error::Internal`] for leaves without memory (tokens, tuples) and for instructions that are not executed.
    pub fn slice(&self, computation: CompId, instruction: InstrId, path: &[usize]) -> Result<Slice> {
        let leaf = self.leaves(computation, instruction)?.iter().find(|(p, _)| p == path);
        leaf.and_then(|(_, slice)| *slice).ok_or_else(|| {
            Error::internal(format!(
                "{instruction} of {computation} has no array at {path:?}, so it has no buffer there"
            ))
        })
    }

    /// Returns all leaves of an executed instruction, depth first, each with its path. Tokens and opaque values have no
    /// slice.
    pub fn leaves(&self, computation: CompId, instruction: InstrId) -> Result<&[LeafSlice]> {
        self.leaves.get(&(computation, instruction)).map(Vec::as_slice).ok_or_else(|| {
            Error::internal(format!("{instruction} of {computation} is not executed, so it has no buffers"))
        })
    }

    /// Returns the array leaves of the entry's result, depth first.
    pub fn output_slices(&self) -> &[OutputSlice] {
        &self.outputs
    }

    /// Returns the allocation of a leaf of an entry parameter; `None` for leaves without memory.
    pub fn parameter_allocation(&self, leaf: &ParameterLeaf) -> Option<&Allocation> {
        self.allocations.iter().find(|a| matches!(&a.kind, AllocationKind::Parameter { leaf: l, .. } if l == leaf))
    }

    /// Returns the size in bytes of all temporary allocations.
    pub fn temp_bytes(&self) -> usize {
        let temporary = self.allocations.iter().filter(|a| a.kind == AllocationKind::Temporary);
        temporary.map(|a| a.size).sum()
    }

    /// Returns the size in bytes of all allocations: the memory of one execution, including arguments and results.
    pub fn total_bytes(&self) -> usize {
        self.allocations.iter().map(|a| a.size).fold(0, usize::saturating_add)
    }

    /// Returns the values that have memory, in the order of their definitions.
    pub fn values(&self) -> &[LiveValue] {
        &self.values
    }

    /// Returns the instructions that do work, in execution order. Those of loops and branches are inside the
    /// instruction that runs them.
    pub fn steps(&self) -> &[(CompId, InstrId)] {
        &self.steps
    }

    /// Returns the peak of temporary memory with the values that are live then.
    pub fn peak(&self) -> &Peak {
        &self.peak
    }
}
