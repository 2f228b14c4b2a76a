//! Facts about the launches of each kernel of a program, for estimates from machine code.

use std::collections::BTreeSet;

use xla_passes::buffers::AllocationId;
use xla_service::thunks::{ArraySlice, Thunk, ThunkKind, ThunkProgram};

use super::commands::{Command, CommandSequence, KernelArgument};
use super::serialized::DeviceProgram;

/// Facts about the launches of one kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaunchFacts {
    /// Number of blocks of a launch.
    pub blocks: u32,
    /// Number of elements of the largest array that it may read.
    pub elements_read: u64,
    /// Bytes of all arrays that it may read.
    pub bytes_read: u64,
    /// Number of elements of the largest array that it may write.
    pub elements_written: u64,
    /// Bytes of all arrays that it may write.
    pub bytes_written: u64,
}

impl LaunchFacts {
    /// Returns the largest launch of each kernel, by the index of its function in the image; zeros for kernels that are
    /// never launched.
    pub fn of_kernels(program: &ThunkProgram, device: &DeviceProgram) -> Vec<LaunchFacts> {
        let mut facts = vec![LaunchFacts::default(); device.image.functions.len()];
        for thunk in program.sequence.walk() {
            let index = match &thunk.kind {
                ThunkKind::Kernel(kernel) => kernel.index,
                ThunkKind::LibraryCall(call) => call.index,
                ThunkKind::Copy
                | ThunkKind::While { .. }
                | ThunkKind::Conditional { .. }
                | ThunkKind::Collective(_)
                | ThunkKind::CustomCall
                | ThunkKind::HostFallback => continue,
            };
            if let Some(sequence) = device.command_sequences.get(index as usize) {
                of_commands(&sequence.commands, sequence, thunk, &mut facts);
            }
        }
        facts
    }

    fn of_launch(blocks: u32, arguments: &[KernelArgument], sequence: &CommandSequence, thunk: &Thunk) -> LaunchFacts {
        let operands = thunk.operands.len();
        let arrays = |of_results: bool| {
            let given = arguments.iter().filter_map(move |argument| match *argument {
                KernelArgument::Array(number) if (number >= operands) == of_results => Some(number),
                KernelArgument::Array(_)
                | KernelArgument::Scratch(_)
                | KernelArgument::Counter(_)
                | KernelArgument::Number(_) => None,
            });
            given.filter_map(|number| thunk.operands.iter().chain(&thunk.results).nth(number))
        };
        let scratch: BTreeSet<usize> = arguments.iter().filter_map(KernelArgument::scratch).collect();
        let scratch: usize = scratch.iter().filter_map(|&number| sequence.scratch.get(number)).sum();
        let written = distinct_bytes(arrays(true));
        let mut read = distinct_bytes(arrays(false)) + scratch;
        // A result that is passed twice is also an operand. A kernel without other inputs reorders its results in
        // place.
        if read == 0 || arrays(true).map(place).collect::<BTreeSet<_>>().len() < arrays(true).count() {
            read += written;
        }
        let most = |of_results| arrays(of_results).map(|array| array.shape.element_count()).max().unwrap_or(0) as u64;
        LaunchFacts {
            blocks,
            elements_read: most(false),
            bytes_read: read as u64,
            elements_written: most(true),
            bytes_written: (written + scratch) as u64,
        }
    }

    fn or_larger(self, other: LaunchFacts) -> LaunchFacts {
        LaunchFacts {
            blocks: self.blocks.max(other.blocks),
            elements_read: self.elements_read.max(other.elements_read),
            bytes_read: self.bytes_read.max(other.bytes_read),
            elements_written: self.elements_written.max(other.elements_written),
            bytes_written: self.bytes_written.max(other.bytes_written),
        }
    }
}

fn of_commands(commands: &[Command], sequence: &CommandSequence, thunk: &Thunk, facts: &mut [LaunchFacts]) {
    for command in commands {
        match command {
            Command::Launch { function, blocks, arguments } => {
                if let Some(known) = facts.get_mut(*function) {
                    *known = known.or_larger(LaunchFacts::of_launch(*blocks, arguments, sequence, thunk));
                }
            }
            Command::Copy { .. } => {}
            Command::Library(library) => {
                for commands in [&library.before, &library.then, &library.otherwise] {
                    of_commands(commands, sequence, thunk, facts);
                }
            }
            Command::Choice(choice) => {
                choice.ways.iter().for_each(|commands| of_commands(commands, sequence, thunk, facts));
            }
        }
    }
}

/// Returns the allocation and offset of an array.
fn place(array: &ArraySlice) -> (AllocationId, usize) {
    (array.slice.allocation, array.slice.offset)
}

/// Returns the bytes of arrays, counting each place once.
fn distinct_bytes<'a>(arrays: impl Iterator<Item = &'a ArraySlice>) -> usize {
    let mut seen = BTreeSet::new();
    arrays.filter(|array| seen.insert(place(array))).map(|array| array.slice.size).sum()
}

impl KernelArgument {
    /// Returns the number of the scratch memory, if the argument is one.
    fn scratch(&self) -> Option<usize> {
        match *self {
            KernelArgument::Scratch(number) => Some(number),
            KernelArgument::Array(_) | KernelArgument::Counter(_) | KernelArgument::Number(_) => None,
        }
    }
}
