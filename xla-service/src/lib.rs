//! The backend interface: traits, platform registry, client, thunks.
//!
//! ```text
//! VerifiedModule ─ Compiler::run_hlo_passes ─> OptimizedModule ─ Compiler::run_backend ─> Executable
//!                                                                  │                        │ execute(buffers)
//!                        operation by operation: ThunkSequence <───┤                        v
//!                                   Lowering, host fallback        └─ whole graph      StreamExecutor, Stream
//! ```
//!
//! A backend implements four traits and returns them from a [`Platform`]:
//!
//! | trait | responsibility |
//! | --- | --- |
//! | [`StreamExecutor`] | one device: memory, streams, events, description |
//! | [`Compiler`] | module to executable; ahead of time as an optional ability |
//! | [`Executable`] | launch with buffers and donation; analyses; serialisation as an optional ability |
//! | [`TransferManager`] | literals to and from device memory, layouts |
//!
//! Users register platforms in a [`PlatformRegistry`] and work through a [`Client`]. Everything is `Send + Sync`,
//! errors are [`xla_hlo::Error`], and the documentation of each trait states whether the caller or the implementation
//! performs a check. Optional abilities are separate traits, returned by a method as `Option<&dyn Ability>`. If an
//! ability is missing, the client returns `Unimplemented` and names the platform.

#![warn(missing_docs)]

mod allocator;
mod cache;
mod cancel;
pub mod client;
pub mod collective;
pub mod compiler;
mod device_only;
pub mod dump;
pub mod executable;
pub mod executor;
mod file_cache;
mod file_name;
mod fingerprint;
mod forked;
pub mod host;
pub mod interpreter;
mod intervals;
mod logical_device;
mod optimize;
mod options;
pub mod output_file;
mod panics;
mod persistent_cache;
pub mod platform;
mod registry;
pub mod serialized;
pub mod signature;
mod temporary;
pub mod thunks;
pub mod topology;
pub mod transfer;
mod workers;

pub use allocator::Allocator;
pub use cache::{CacheStats, CompilationCache};
pub use cancel::CancelToken;
pub use client::{
    Buffer, BufferHold, BufferPromise, Client, ClientOptions, Completer, Completion, Connector, Device, DeviceResults,
    DeviceTimes, Dispatch, Donate, ExecuteOptions, LoadedExecutable, ProcessOptions, StagedBuffer,
};
pub use compiler::{
    AotCompilationOptions, AotExtra, Assembler, Compiler, ConstantsIn, Contraction, ExternalCall, HloPasses, Optimize,
    OptimizedModule, Relocation,
};
pub use executable::{Argument, CostAnalysis, Executable, ExecutionContext, MemoryAnalysis};
pub use executor::{
    DeviceDescription, DeviceMemory, Event, Fault, FaultInjection, MemoryStats, Stream, StreamExecutor, Timing,
};
pub use file_cache::{FileCache, delete_abandoned_files};
pub use file_name::{LONGEST_FILE_NAME, file_name};
pub use fingerprint::Fingerprint;
pub use logical_device::LogicalDevice;
pub use optimize::optimize;
pub use options::{CompileOptions, FallbackPolicy, OptLevel};
pub use output_file::{OutputFile, write_file, write_files};
pub use panics::panic_message;
pub use persistent_cache::build_identity;
pub use platform::Platform;
pub use registry::{Availability, CompiledOut, PlatformRegistry, PlatformStatus};
pub use signature::{ArgumentLeaf, Donation, ResultLeaf, Signature};
pub use temporary::remove_temporaries;
pub use transfer::TransferManager;
pub use xla_hlo::ops::RunContext;
pub use xla_passes::PassOptions;
