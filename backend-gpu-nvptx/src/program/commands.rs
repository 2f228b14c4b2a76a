//! Command sequences of thunks: launches, copies and library calls on one stream. A GPU and the emulated one run the
//! same sequences, and executables store them ([`crate::program::serialized`]).
//!
//! `B` is the number of blocks of a launch, which is known once its kernel is generated.

use serde::{Deserialize, Serialize};

use super::library_call::LibraryCall;
use super::library_call::matmul::Precision;

/// Commands of one thunk, executed in order on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandSequence<B = u32> {
    /// Size of each scratch memory in bytes. Scratch memory is uninitialised, and freed after the last command.
    pub scratch: Vec<usize>,
    /// Increment of the device's random counter, if random numbers are drawn.
    pub rng_delta: Option<i64>,
    /// Commands in the order of execution.
    pub commands: Vec<Command<B>>,
}

/// Command of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command<B = u32> {
    /// Launch of a kernel.
    Launch {
        /// Index into [`ModuleImage::functions`](crate::program::image::ModuleImage::functions).
        function: usize,
        /// Number of blocks, at least one.
        blocks: B,
        /// Arguments of the kernel.
        arguments: Vec<KernelArgument>,
    },
    /// Copy of all bytes of an array of the thunk to another one of the same size.
    Copy { from: usize, to: usize },
    /// Call of one of NVIDIA's libraries.
    Library(Box<LibraryCommand<B>>),
    /// Choice between alternatives of our own that compute the same results.
    Choice(Box<Choice<B>>),
}

/// Library call with the commands around it, and the fallback if the library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LibraryCommand<B = u32> {
    /// Library call.
    pub call: LibraryCall,
    /// Addresses of its arrays.
    pub arrays: Vec<KernelArgument>,
    /// Commands that prepare its arrays.
    pub before: Vec<Command<B>>,
    /// Commands that process its result.
    pub then: Vec<Command<B>>,
    /// Fallback: commands instead of the call; none if the program requires the library.
    pub otherwise: Vec<Command<B>>,
}

/// Alternatives that compute the same results without a library; one of them is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choice<B = u32> {
    /// Name of the work and of all alternatives, for messages; identifies the choice.
    pub name: String,
    /// Number of products that are summed for one element of the result.
    pub terms: usize,
    pub precision: Precision,
    /// Commands of each alternative, which are launches and copies. There is at least one alternative. The first is the
    /// default, executed unless another one is known to be faster.
    pub ways: Vec<Vec<Command<B>>>,
}

impl Choice {
    /// Returns the choice if the commands are exactly one choice.
    pub fn of(commands: &[Command]) -> Option<&Choice> {
        match commands {
            [Command::Choice(choice)] => Some(choice),
            _ => None,
        }
    }

    /// Returns the commands of alternative `number`, or of the default if there is no such alternative.
    pub fn way(&self, number: usize) -> &[Command] {
        self.ways.get(number).or(self.ways.first()).map_or(&[], Vec::as_slice)
    }
}

/// Returns the number of alternatives of commands: those of a choice, otherwise one; 0 for no commands.
pub(crate) fn ways(commands: &[Command]) -> usize {
    Choice::of(commands).map_or(usize::from(!commands.is_empty()), |choice| choice.ways.len())
}

/// Returns the commands of alternative `number` of a choice; all commands if they are not a choice.
pub(crate) fn way(commands: &[Command], number: usize) -> &[Command] {
    Choice::of(commands).map_or(commands, |choice| choice.way(number))
}

/// Argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KernelArgument {
    /// Address of an array of the thunk: operands, then results.
    Array(usize),
    /// Address of a scratch memory.
    Scratch(usize),
    /// Half of the sequence's random counter before it is advanced: low (0) or high (1).
    Counter(usize),
    /// 64-bit integer.
    Number(i64),
}
