//! What compiling gives and a device takes: code, and the steps of each thunk. The same for the driver and for the
//! host, and as bytes in a file ([`crate::program::serialized`]).

use serde::{Deserialize, Serialize};

use super::library_call::LibraryCall;

/// What one thunk does on the device: steps, one after the other, on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandSequence {
    /// Bytes of each scratch memory, which hold anything at first and are free again when the last step is done.
    pub scratch: Vec<usize>,
    /// How far it moves the device's counter of random numbers on, if it draws some.
    pub rng_delta: Option<i64>,
    /// The steps.
    pub commands: Vec<Command>,
}

/// One step of a routine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// A launch.
    Launch {
        /// Index into [`ModuleModuleImage::functions`].
        function: usize,
        /// Blocks, at least one.
        blocks: u32,
        /// What its parameters are.
        arguments: Vec<KernelArgument>,
    },
    /// A copy of all bytes of an array of the thunk to another one of the same size.
    Copy { from: usize, to: usize },
    /// A call of one of NVIDIA's libraries.
    Library(Box<LibraryCommand>),
}

/// A call of one of NVIDIA's libraries with what belongs to it; or other steps where the library is not installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LibraryCommand {
    /// What is called.
    pub call: LibraryCall,
    /// The addresses of its arrays.
    pub arrays: Vec<KernelArgument>,
    /// What prepares its arrays.
    pub before: Vec<Command>,
    /// What goes on with its result.
    pub then: Vec<Command>,
    /// What happens instead; nothing if the program cannot do without the library.
    pub otherwise: Vec<Command>,
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KernelArgument {
    /// The address of an array of the thunk: operands, then results.
    Array(usize),
    /// The address of a scratch memory.
    Scratch(usize),
    /// Of the counter that the routine draws from, before it moves it on: the low half (0) or the high one (1).
    Counter(usize),
    /// A number.
    Number(i64),
}
