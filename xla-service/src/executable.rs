//! Executable trait: launch on buffers, cost and memory analysis, serialization.

use std::fmt;
use std::sync::Arc;

use xla_hlo::eval::RandomState;
use xla_hlo::ops::{CustomCallRegistry, RunContext};
use xla_hlo::{Literal, Module, Result, ResultExt};

use crate::cancel::CancelToken;
use crate::executor::{DeviceMemory, Stream, StreamExecutor};
use crate::logical_device::LogicalDevice;
use crate::signature::{ResultLeaf, Signature};
use crate::thunks::ThunkSequence;
use crate::transfer::TransferManager;

/// Compiled program, which may be launched repeatedly and from several threads at once.
///
/// # Contract
///
/// - **Arguments** match [`Executable::signature`], in its order. The client has checked their number, shapes and
///   layouts, that each is on `context`'s device and has the size its shape needs, and that none is used after its
///   donation.
/// - **Results** match the [outputs](Signature::outputs) of the signature, in its order: one memory each, all distinct.
/// - **Donation.** The executable owns an [`Argument::Donated`] memory: it may reuse it for a result or a temporary, or
///   drop it. An [`Argument::Shared`] memory is read-only; an output that is declared to alias it is a copy.
///   `crate::thunks::ExecutionBuffers` implements these rules for executables with a buffer assignment.
/// - **Asynchrony.** Work may still be queued on the stream when [`Executable::execute`] returns; the caller then
///   records an event. The executable keeps the resources of queued work alive.
/// - **Errors** that are found immediately are returned; errors that are found later are reported by the stream.
pub trait Executable: Send + Sync + fmt::Debug {
    /// Returns the compiled module, after all passes.
    fn module(&self) -> &Module;

    /// Returns arguments and results, with layouts.
    fn signature(&self) -> &Signature;

    /// Launches the program.
    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>>;

    /// Returns the memory that the program takes.
    fn memory_analysis(&self) -> MemoryAnalysis;

    /// Returns the cost of the program, as far as it is known without running it.
    fn cost_analysis(&self) -> CostAnalysis;

    /// Returns the serializer of this executable, if it has one; its counterpart is
    /// [`crate::compiler::Compiler::loader`].
    fn serializer(&self) -> Option<&dyn SerializeExecutable> {
        None
    }

    /// Returns the thunks of the program, for reports of native and host execution; `None` if the backend compiles it
    /// as a whole.
    fn thunks(&self) -> Option<&ThunkSequence> {
        None
    }

    /// Whether a run can be sent to a recording stream; the error is a readable reason why it cannot.
    fn can_be_recorded(&self, context: &ExecutionContext<'_>) -> std::result::Result<(), String> {
        let _ = context;
        Err("the platform cannot record programs".to_string())
    }

    /// Returns readable descriptions of how the program runs (thunks, buffers, code), under names such as `thunks.txt`.
    /// Empty if there are none.
    fn dumps(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Environment of an execution.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionContext<'a> {
    /// Device, for memory allocation.
    pub executor: &'a dyn StreamExecutor,
    /// Stream that receives the work.
    pub stream: &'a dyn Stream,
    /// Layouts on the device, for intermediate work on the host.
    pub transfer: &'a dyn TransferManager,
    /// Handlers of custom calls for this run. The client has checked that the program's custom calls have handlers.
    pub custom_calls: &'a CustomCallRegistry,
    /// Random state of the program: the device's counter.
    pub random: &'a RandomState,
    /// Token that lets the caller cancel the program.
    pub cancel: &'a CancelToken,
    /// Values passed with this run, for the handlers of custom calls.
    pub run: &'a RunContext,
    /// Place of the device in a program that each of several devices runs on its own values; `None` for other programs.
    pub logical_device: Option<&'a LogicalDevice>,
}

impl ExecutionContext<'_> {
    /// Sets the label of later work on the stream: a thunk with its instruction, an argument, a constant.
    pub fn announce(&self, part: &dyn Fn() -> String) {
        self.stream.annotate(&|| format!("platform {}, {}", self.executor.description().platform, part()));
    }

    /// Runs a part of the work under a label. Both immediate errors and later errors of the stream start with the
    /// label.
    pub fn during<T>(&self, part: impl Fn() -> String, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.announce(&part);
        work().context(part)
    }

    /// Waits for the device and returns the arguments' values, one for each parameter of the signature. For executables
    /// that compute on the host.
    pub fn read_arguments(&self, signature: &Signature, arguments: &[Argument]) -> Result<Vec<Literal>> {
        let leaves = signature.arguments().iter().zip(arguments);
        let leaves = leaves.map(|(leaf, argument)| self.transfer.read(self.stream, argument.memory(), 0, &leaf.shape));
        signature.group_arguments(leaves.collect::<Result<_>>()?)
    }

    /// Copies a result that was computed on the host to device memory: one memory for each output of the signature.
    /// Arrays of dynamic size may have their actual sizes.
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

/// One array of the arguments of a launch.
#[derive(Debug)]
pub enum Argument {
    /// Read-only memory; other programs may be reading it at the same time.
    Shared(Arc<DeviceMemory>),
    /// Memory that the program owns: it may write to it and may return it.
    Donated(DeviceMemory),
}

impl Argument {
    /// Returns the memory for reading.
    pub fn memory(&self) -> &DeviceMemory {
        match self {
            Argument::Shared(memory) => memory,
            Argument::Donated(memory) => memory,
        }
    }
}

/// Optional ability: serialises a compiled program.
pub trait SerializeExecutable: Send + Sync {
    /// Returns bytes that the same platform can load, including version and target. They may contain machine code: load
    /// only bytes from an origin whose programs you would run.
    fn serialize(&self) -> Result<Vec<u8>>;
}

/// Memory that one run of a program takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryAnalysis {
    /// Arguments.
    pub argument_bytes: usize,
    /// Results.
    pub output_bytes: usize,
    /// Results that reuse arguments; also included in both fields above.
    pub alias_bytes: usize,
    /// Temporaries, at their peak.
    pub temporary_bytes: usize,
    /// Constants, shared by all runs.
    pub constant_bytes: usize,
    /// Machine code, if its size is known.
    pub code_bytes: usize,
}

/// Cost of one run of a program; `None` for unknown values.
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
    /// Returns the cost of one run by [`xla_passes::analysis::cost`], for the module after a backend's passes. A loop
    /// with unknown trip count counts as one iteration.
    pub fn of(module: &Module) -> CostAnalysis {
        let total = xla_passes::analysis::cost::analyze(module).total;
        CostAnalysis {
            flops: Some(total.flops as f64),
            transcendentals: Some(total.transcendentals as f64),
            bytes_accessed: Some(total.bytes() as f64),
        }
    }
}
