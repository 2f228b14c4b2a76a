//! A client's device: its platform's parts, its stream, its cache.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use xla_hlo::eval::RandomState;
use xla_hlo::ops::CustomCallRegistry;
use xla_hlo::{ArrayShape, Error, Literal, Result, VerifiedModule};

use super::dispatch::DispatchQueue;
use crate::cache::CompilationCache;
use crate::cancel::CancelToken;
use crate::compiler::Compiler;
use crate::dump;
use crate::executable::{Executable, ExecutionContext};
use crate::executor::{DeviceDescription, DeviceMemory, Event, MemoryStats, Stream, StreamExecutor};
use crate::options::CompileOptions;
use crate::persistent_cache::PersistentCache;
use crate::transfer::TransferManager;

/// A connection to one device of a platform. A clone is another handle to it; all methods may be called from any
/// thread.
#[derive(Clone)]
pub struct Client(pub(super) Arc<Device>);

/// State shared by handles.
pub(super) struct Device {
    pub platform: String,
    pub executor: Arc<dyn StreamExecutor>,
    pub compiler: Arc<dyn Compiler>,
    pub transfer: Arc<dyn TransferManager>,
    /// All work of this client goes to one stream, so that results are ready when later work needs them.
    pub stream: Box<dyn Stream>,
    pub cache: Arc<CompilationCache>,
    pub custom_calls: CustomCallRegistry,
    /// The random state of all programs of this client.
    pub random: RandomState,
    /// For runs that nobody can cancel.
    pub never: CancelToken,
    pub queue: OnceLock<DispatchQueue>,
}

impl Client {
    /// Name of the platform.
    pub fn platform(&self) -> &str {
        &self.0.platform
    }

    /// Description of the device.
    pub fn device(&self) -> &DeviceDescription {
        self.0.executor.description()
    }

    /// The device's memory in use.
    pub fn memory_stats(&self) -> MemoryStats {
        self.0.executor.memory_stats()
    }

    /// The compilation cache.
    pub fn cache(&self) -> &Arc<CompilationCache> {
        &self.0.cache
    }

    /// The [`Error::Unimplemented`] for an ability that the platform lacks.
    pub(super) fn cannot(&self, what: &str) -> Error {
        Error::unimplemented(format!("platform {} cannot {what}", self.0.platform))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({}, device {})", self.0.platform, self.device().ordinal)
    }
}

impl Device {
    pub fn compile(&self, module: VerifiedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let _span = tracing::info_span!("compile", module = module.name(), platform = %self.platform).entered();
        let kept = PersistentCache::of(&self.platform, &*self.compiler, &module, options);
        if let Some(executable) = kept.as_ref().and_then(|kept| kept.load(options)) {
            return Ok(executable);
        }
        let dump = dump::Dump::new(options, &module);
        dump.module("before-passes", &module)?;
        let optimized = {
            let _span = tracing::info_span!("hlo-passes").entered();
            self.compiler.run_hlo_passes(module, options)?
        };
        dump.module("after-passes", &optimized)?;
        let _span = tracing::info_span!("backend").entered();
        let executable = self.compiler.run_backend(optimized, options)?;
        dump.executable(&*executable)?;
        if let Some(kept) = kept {
            kept.store(&*executable);
        }
        Ok(executable)
    }

    /// Sends a literal to memory, and returns the event of its arrival.
    pub fn upload(
        &self,
        literal: &Literal,
        shape: &ArrayShape,
        mut memory: DeviceMemory,
    ) -> Result<(DeviceMemory, Event)> {
        self.transfer.write(&*self.stream, literal, shape, &mut memory, 0)?;
        Ok((memory, self.stream.record_event()?))
    }

    pub fn context<'a>(&'a self, cancel: &'a CancelToken) -> ExecutionContext<'a> {
        ExecutionContext {
            executor: &*self.executor,
            stream: &*self.stream,
            transfer: &*self.transfer,
            custom_calls: &self.custom_calls,
            random: &self.random,
            cancel,
        }
    }

    pub fn queue(&self) -> &DispatchQueue {
        self.queue.get_or_init(|| DispatchQueue::new(&self.platform))
    }
}

/// An error if the literal has another element type or other dimensions than `shape`.
pub(super) fn fits(literal: &Literal, shape: &ArrayShape) -> Result<()> {
    if literal.shape().compatible(&shape.clone().into()) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("expected a literal of {shape}, found one of {}", literal.shape())))
}

/// Runs work of a backend; its panic becomes an error, so that one bad program does not take the process with it.
pub(super) fn protect<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // State that the closure leaves half done is dropped or, like pools and caches, consistent after each of its steps.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(Error::internal(format!("a backend panicked: {}", text.unwrap_or("without a message"))))
    })
}
