//! Command sequences of thunks: launches, copies and library calls on one stream. The same for the driver and for the
//! host, and as bytes in a file ([`crate::program::serialized`]).

use serde::{Deserialize, Serialize};

use super::library_call::LibraryCall;
use super::library_call::matmul::Precision;

/// The commands of one thunk on the device, one after the other, on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandSequence {
    /// Bytes of each scratch memory, uninitialised, and free again when the last command is done.
    pub scratch: Vec<usize>,
    /// Increment of the device's random counter, if random numbers are drawn.
    pub rng_delta: Option<i64>,
    /// The commands.
    pub commands: Vec<Command>,
}

/// One command of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// A launch.
    Launch {
        /// Index into [`ModuleModuleImage::functions`].
        function: usize,
        /// Blocks, at least one.
        blocks: u32,
        /// Its arguments.
        arguments: Vec<KernelArgument>,
    },
    /// A copy of all bytes of an array of the thunk to another one of the same size.
    Copy { from: usize, to: usize },
    /// A call of one of NVIDIA's libraries.
    Library(Box<LibraryCommand>),
    /// One of several ways of our own to compute the same.
    Choice(Box<Choice>),
}

/// A call of one of NVIDIA's libraries with the commands around it; or other commands where the library is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LibraryCommand {
    /// The call.
    pub call: LibraryCall,
    /// The addresses of its arrays.
    pub arrays: Vec<KernelArgument>,
    /// Commands that prepare its arrays.
    pub before: Vec<Command>,
    /// Commands that process its result.
    pub then: Vec<Command>,
    /// Commands instead of the call; none if the program cannot do without the library.
    pub otherwise: Vec<Command>,
}

/// Several ways to compute the same without a library, of which one is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choice {
    /// Name of the work and all ways, for people, which tells the choice from any other.
    pub name: String,
    /// Products that a number of the result is the sum of.
    pub terms: usize,
    pub precision: Precision,
    /// The commands of each way, at least one: launches and copies. The first is the usual one, taken unless another
    /// one is known to be faster.
    pub ways: Vec<Vec<Command>>,
}

impl Choice {
    /// The choice that commands are, if they are one and nothing else.
    pub fn of(commands: &[Command]) -> Option<&Choice> {
        match commands {
            [Command::Choice(choice)] => Some(choice),
            _ => None,
        }
    }

    /// The commands of the way of that number; the usual one where there is no such way.
    pub fn way(&self, number: usize) -> &[Command] {
        self.ways.get(number).or(self.ways.first()).map_or(&[], Vec::as_slice)
    }
}

/// Number of ways in which commands may be done: those of a choice, else one; 0 of no commands.
pub(crate) fn ways(commands: &[Command]) -> usize {
    Choice::of(commands).map_or(usize::from(!commands.is_empty()), |choice| choice.ways.len())
}

/// The commands of the way of that number: of a choice, else all.
pub(crate) fn way(commands: &[Command], number: usize) -> &[Command] {
    Choice::of(commands).map_or(commands, |choice| choice.way(number))
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KernelArgument {
    /// The address of an array of the thunk: operands, then results.
    Array(usize),
    /// The address of a scratch memory.
    Scratch(usize),
    /// The random counter of the sequence, before it is advanced: the low half (0) or the high one (1).
    Counter(usize),
    /// A number.
    Number(i64),
}
