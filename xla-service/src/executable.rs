//! Executable trait: launch with buffers, cost and memory analysis, serialization.

use std::fmt;
use std::sync::Arc;

use xla_hlo::eval::RandomState;
use xla_hlo::ops::{CustomCallRegistry, RunContext};
use xla_hlo::{Literal, Module, Result, ResultExt};

use crate::cancel::CancelToken;
use crate::executor::{DeviceMemory, Stream, StreamExecutor};
use crate::signature::{ResultLeaf, Signature};
use crate::thunks::ThunkSequence;
use crate::transfer::TransferManager;

/// A compiled program, ready to be launched any number of times, also at the same time from several threads.
///
/// # Contract
///
/// - **Arguments** are those of [`Executable::signature`], in its order. The client has checked their number, shapes
///   and layouts, that each lies on `context`'s device and has the size its shape needs, and that none is used after
///   its donation.
/// - **Results** are the [outputs](Signature::outputs) of the signature, in its order: one memory each, all different.
/// - **Donation.** An [`Argument::Donated`] memory is the executable's: to reuse for a result or a temporary, or to
///   drop. An [`Argument::Shared`] one is read only; an output that is declared to alias it is a copy.
///   `crate::thunks::ExecutionBuffers` does all of this for executables that have a buffer assignment.
/// - **Asynchrony.** Work may still be queued on the stream when [`Executable::execute`] returns; the caller records an
///   event after it. The executable keeps alive resources of queued work.
/// - **Errors** of the program found at once are returned; errors found later come out of the stream.
pub trait Executable: Send + Sync + fmt::Debug {
    /// The module as it was compiled, after all passes.
    fn module(&self) -> &Module;

    /// Arguments and results, with layouts.
    fn signature(&self) -> &Signature;

    /// Launches the program.
    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>>;

    /// Memory the program takes.
    fn memory_analysis(&self) -> MemoryAnalysis;

    /// Work the program does, as far as it can be known without running it.
    fn cost_analysis(&self) -> CostAnalysis;

    /// The serializer of this executable, if it has one; its counterpart is [`crate::compiler::Compiler::loader`].
    fn serializer(&self) -> Option<&dyn SerializeExecutable> {
        None
    }

    /// The steps it runs in, for reports of native and host execution; `None` for a program that is one whole.
    fn thunks(&self) -> Option<&ThunkSequence> {
        None
    }

    /// Whether a run can be sent to a stream that only records; the error says, for people, why not.
    fn can_be_recorded(&self, context: &ExecutionContext<'_>) -> std::result::Result<(), String> {
        let _ = context;
        Err("the platform records no programs".to_string())
    }

    /// A text for people of how the program runs (thunks, buffers, code), under names such as `thunks.txt`; empty if
    /// there is none.
    fn dumps(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Environment of an execution.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionContext<'a> {
    /// The device, for memory.
    pub executor: &'a dyn StreamExecutor,
    /// The stream that the work is sent to.
    pub stream: &'a dyn Stream,
    /// Layouts on the device; for work on the host in between.
    pub transfer: &'a dyn TransferManager,
    /// The handlers of custom calls, for this run; the client has seen that there is one for each of the program's.
    pub custom_calls: &'a CustomCallRegistry,
    /// The random state of the program: the device's counter.
    pub random: &'a RandomState,
    /// By which the caller may ask for the program to stop.
    pub cancel: &'a CancelToken,
    /// Values handed along with this run, for the handlers of custom calls.
    pub run: &'a RunContext,
}

impl ExecutionContext<'_> {
    /// Names the work sent to the stream from now on: a thunk with its instruction, an argument, a constant.
    pub fn announce(&self, part: &dyn Fn() -> String) {
        self.stream.annotate(&|| format!("platform {}, {}", self.executor.description().platform, part()));
    }

    /// Does a part of the work, and says which in front of its errors: those that come at once, and those of the stream
    /// later.
    pub fn during<T>(&self, part: impl Fn() -> String, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.announce(&part);
        work().context(part)
    }

    /// The arguments' values, one for each parameter of the signature; for executables that compute on the host. Waits
    /// for the device.
    pub fn read_arguments(&self, signature: &Signature, arguments: &[Argument]) -> Result<Vec<Literal>> {
        let leaves = signature.arguments().iter().zip(arguments);
        let leaves = leaves.map(|(leaf, argument)| self.transfer.read(self.stream, argument.memory(), 0, &leaf.shape));
        signature.group_arguments(leaves.collect::<Result<_>>()?)
    }

    /// Device memory for a result that was computed on the host: one for each of the signature's outputs. Arrays of
    /// dynamic size may be at their sizes.
    pub fn write_results(&self, signature: &Signature, result: Literal) -> Result<Vec<DeviceMemory>> {
        let write = |(leaf, literal): (&ResultLeaf, Literal)| {
            let memory = self.executor.allocate(self.transfer.byte_size(&leaf.shape)?);
            let mut memory = memory.context(|| format!("the result {}", leaf.shape))?;
            self.transfer.write(self.stream, &literal, &leaf.shape, &mut memory, 0)?;
            Ok(memory)
        };
        signature.outputs().iter().zip(signature.outputs_of(result)?).map(write).collect()
    }
}

/// One leaf of the arguments of a launch.
#[derive(Debug)]
pub enum Argument {
    /// Read only: others may be reading it at the same time.
    Shared(Arc<DeviceMemory>),
    /// Given away: the program may write to it and may return it.
    Donated(DeviceMemory),
}

impl Argument {
    /// The memory for reading.
    pub fn memory(&self) -> &DeviceMemory {
        match self {
            Argument::Shared(memory) => memory,
            Argument::Donated(memory) => memory,
        }
    }
}

/// Optional ability: write a compiled program down.
pub trait SerializeExecutable: Send + Sync {
    /// Bytes from which the same platform can load the program again, with version and target inside. They may hold
    /// machine code: load none from somebody whose programs you would not run.
    fn serialize(&self) -> Result<Vec<u8>>;
}

/// Memory that one run of a program takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryAnalysis {
    /// Arguments.
    pub argument_bytes: usize,
    /// Results.
    pub output_bytes: usize,
    /// Results that reuse arguments, contained in both numbers above.
    pub alias_bytes: usize,
    /// Temporaries, at their peak.
    pub temporary_bytes: usize,
    /// Constants, shared by all runs.
    pub constant_bytes: usize,
    /// Machine code, where it is known.
    pub code_bytes: usize,
}

/// Work that one run of a program does. `None` where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CostAnalysis {
    /// Floating-point operations.
    pub flops: Option<f64>,
    /// Evaluations of transcendental functions.
    pub transcendentals: Option<f64>,
    /// Bytes read from and written to memory.
    pub bytes_accessed: Option<f64>,
}

impl CostAnalysis {
    /// Cost of one run of a module by [`xla_passes::analysis::cost`], for the module as a backend's passes left it.
    /// A loop that nobody can count counts as one iteration.
    pub fn of(module: &Module) -> CostAnalysis {
        let total = xla_passes::analysis::cost::analyze(module).total;
        CostAnalysis {
            flops: Some(total.flops as f64),
            transcendentals: Some(total.transcendentals as f64),
            bytes_accessed: Some(total.bytes() as f64),
        }
    }
}
