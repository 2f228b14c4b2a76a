//! Command sequences of thunks: launches, copies and library calls on one stream. The same for the driver and for the
//! host, and as bytes in a file ([`crate::program::serialized`]).

use serde::{Deserialize, Serialize};

use super::library_call::LibraryCall;

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
