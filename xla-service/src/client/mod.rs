//! The client: compile modules for a device, move values there and back, run programs.
//!
//! ```text
//! Client::new(&registry, "cpu") ─ compile(&module, &options) ─> LoadedExecutable
//!       │                                                            │
//!       └ buffer(&literal) ──────> Buffer ──── execute(&[&a, &b]) ───┴──> Vec<Buffer> ── to_literal()
//! ```
//!
//! The client is where a program's inputs are judged: number, shapes, layouts, devices, donation. What comes to a
//! backend from here has been checked. A panic below is caught here and becomes an [`Error::Internal`].

mod buffer;
mod dispatch;
mod loaded;
#[cfg(test)]
mod tests;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

pub use buffer::Buffer;
pub use loaded::{Dispatch, ExecuteOptions, LoadedExecutable};

use buffer::Slot;
use dispatch::DispatchQueue;
use xla_hlo::eval::RandomState;
use xla_hlo::ops::CustomCallRegistry;
use xla_hlo::{ArrayShape, Error, Literal, Result, ResultExt, VerifiedModule};

use crate::cache::CompilationCache;
use crate::cancel::CancelToken;
use crate::compiler::Compiler;
use crate::dump;
use crate::executable::{Executable, ExecutionContext};
use crate::executor::{DeviceDescription, DeviceMemory, Event, MemoryStats, Stream, StreamExecutor};
use crate::options::CompileOptions;
use crate::persistent_cache::PersistentCache;
use crate::registry::PlatformRegistry;
use crate::transfer::TransferManager;

/// A connection to one device of a platform. Cloning gives another handle to it; all methods may be called from any
/// thread.
#[derive(Clone)]
pub struct Client(Arc<Device>);

/// What handles share.
struct Device {
    platform: String,
    executor: Arc<dyn StreamExecutor>,
    compiler: Arc<dyn Compiler>,
    transfer: Arc<dyn TransferManager>,
    /// All work of this client goes to one stream, so that what is computed is there when later work needs it.
    stream: Box<dyn Stream>,
    cache: Arc<CompilationCache>,
    custom_calls: CustomCallRegistry,
    /// What all programs of this client draw random numbers from.
    random: RandomState,
    /// For runs that nobody can cancel.
    never: CancelToken,
    queue: OnceLock<DispatchQueue>,
}

impl Client {
    /// A client of the platform's first device, with a compilation cache of its own.
    pub fn new(registry: &PlatformRegistry, platform: &str) -> Result<Client> {
        Client::for_device(registry, platform, 0, Arc::default())
    }

    /// A client of device `ordinal`, with a compilation cache that may be shared with other clients.
    ///
    /// Errors: [`Error::NotFound`] for an unknown platform or device, [`Error::FailedPrecondition`] where the machine
    /// cannot run it.
    pub fn for_device(
        registry: &PlatformRegistry,
        platform: &str,
        ordinal: usize,
        cache: Arc<CompilationCache>,
    ) -> Result<Client> {
        let custom_calls = registry.custom_calls().clone();
        let platform = registry.get(platform)?;
        let executor = platform.executor(ordinal)?;
        Ok(Client(Arc::new(Device {
            platform: platform.name().to_string(),
            stream: executor.create_stream()?,
            executor,
            compiler: platform.compiler(),
            transfer: platform.transfer_manager(),
            cache,
            custom_calls,
            random: RandomState::new(),
            never: CancelToken::never(),
            queue: OnceLock::new(),
        })))
    }

    /// Name of the platform.
    pub fn platform(&self) -> &str {
        &self.0.platform
    }

    /// What the device is.
    pub fn device(&self) -> &DeviceDescription {
        self.0.executor.description()
    }

    /// How much of the device's memory is used.
    pub fn memory_stats(&self) -> MemoryStats {
        self.0.executor.memory_stats()
    }

    /// The compilation cache.
    pub fn cache(&self) -> &Arc<CompilationCache> {
        &self.0.cache
    }

    /// Compiles a module, or takes the program from the cache.
    ///
    /// Errors: those of the compiler, and [`Error::Unimplemented`] for a custom call that the registry, from which the
    /// client was made, has no handler for.
    pub fn compile(&self, module: &VerifiedModule, options: &CompileOptions) -> Result<LoadedExecutable> {
        let device = &self.0;
        device.custom_calls.check(module)?;
        let compile = || protect(|| device.compile(module.clone(), options));
        let executable = device.cache.get_or_compile(&device.platform, module, options, compile)?;
        Ok(LoadedExecutable::new(self.clone(), executable))
    }

    /// Loads a program that [`LoadedExecutable::serialize`] wrote. [`Error::Unimplemented`] where the platform cannot.
    pub fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<LoadedExecutable> {
        let loader = self.0.compiler.loader().ok_or_else(|| self.cannot("load serialised programs"))?;
        Ok(LoadedExecutable::new(self.clone(), protect(|| loader.load(bytes, options))?))
    }

    /// An array on the device, in the device's usual layout. The literal must be an array.
    pub fn buffer(&self, literal: &Literal) -> Result<Buffer> {
        self.buffer_of_shape(literal, literal.shape().expect_array()?)
    }

    /// An array on the device, in the layout of `shape` or the nearest one the device has. The literal must have its
    /// dimensions.
    pub fn buffer_of_shape(&self, literal: &Literal, shape: &ArrayShape) -> Result<Buffer> {
        fits(literal, shape)?;
        self.buffer_for(literal, shape, &|| format!("an array of {shape}"))
    }

    /// A literal on the device, in the layout of `shape` or the nearest one; `what` is it that errors talk of.
    fn buffer_for(&self, literal: &Literal, shape: &ArrayShape, what: &dyn Fn() -> String) -> Result<Buffer> {
        let device = &self.0;
        let shape = device.transfer.device_shape(shape)?;
        let place = || format!("platform {}, {}", device.platform, what());
        device.stream.annotate(&place);
        let memory = device.executor.allocate(device.transfer.byte_size(&shape)?).context(place)?;
        let (memory, event) = device.upload(literal, &shape, memory).context(place)?;
        Ok(Buffer::new(self.clone(), Arc::new(shape), Slot::ready(memory, event)))
    }

    /// The [`Error::Unimplemented`] for an ability that the platform lacks.
    fn cannot(&self, what: &str) -> Error {
        Error::unimplemented(format!("platform {} cannot {what}", self.0.platform))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({}, device {})", self.0.platform, self.device().ordinal)
    }
}

impl Device {
    fn compile(&self, module: VerifiedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
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

    /// Sends a literal to memory, and gives the event of its arrival.
    fn upload(&self, literal: &Literal, shape: &ArrayShape, mut memory: DeviceMemory) -> Result<(DeviceMemory, Event)> {
        self.transfer.write(&*self.stream, literal, shape, &mut memory, 0)?;
        Ok((memory, self.stream.record_event()?))
    }

    fn context<'a>(&'a self, cancel: &'a CancelToken) -> ExecutionContext<'a> {
        ExecutionContext {
            executor: &*self.executor,
            stream: &*self.stream,
            transfer: &*self.transfer,
            custom_calls: &self.custom_calls,
            random: &self.random,
            cancel,
        }
    }

    fn queue(&self) -> &DispatchQueue {
        self.queue.get_or_init(|| DispatchQueue::new(&self.platform))
    }
}

/// An error if the literal has another element type or other dimensions than `shape`.
fn fits(literal: &Literal, shape: &ArrayShape) -> Result<()> {
    if literal.shape().compatible(&shape.clone().into()) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("a literal of {} is no {shape}", literal.shape())))
}

/// Runs what a backend does; its panic becomes an error, so that one bad program does not take the process with it.
fn protect<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the closure leaves half done is dropped or, like pools and caches, consistent after each of its own steps.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(Error::internal(format!("a backend panicked: {}", text.unwrap_or("without a message"))))
    })
}
