//! Devices of a client: memory, stream, random state of each; parts of the platform that they share.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use xla_hlo::eval::RandomState;
use xla_hlo::ops::{CustomCallRegistry, RunContext};
use xla_hlo::{ArrayShape, Error, Literal, Result, VerifiedModule};

use super::value::Work;
use crate::cache::CompilationCache;
use crate::cancel::CancelToken;
use crate::compiler::Compiler;
use crate::dump;
use crate::executable::{Executable, ExecutionContext};
use crate::executor::{DeviceDescription, MemoryStats, Stream, StreamExecutor, Timing};
use crate::options::CompileOptions;
use crate::persistent_cache::PersistentCache;
use crate::transfer::TransferManager;
use crate::workers::Workers;

/// A connection to devices of one platform. A clone is another handle to it; all methods may be called from any thread.
///
/// Its devices share compiler, compilation cache, handlers of custom calls and worker threads.
#[derive(Clone)]
pub struct Client(pub(super) Arc<ClientState>);

/// One device of a client. A clone is another handle to it.
#[derive(Clone)]
pub struct Device {
    client: Client,
    index: usize,
}

/// State shared by handles.
pub(super) struct ClientState {
    pub platform: String,
    pub compiler: Arc<dyn Compiler>,
    pub transfer: Arc<dyn TransferManager>,
    pub cache: Arc<CompilationCache>,
    pub custom_calls: CustomCallRegistry,
    /// For runs that nobody can cancel.
    pub never: CancelToken,
    pub devices: Vec<DeviceState>,
    /// Run programs that are not run by their callers. Last, so that its threads end before what they use.
    pub workers: Arc<Workers>,
}

pub(super) struct DeviceState {
    pub executor: Arc<dyn StreamExecutor>,
    /// All work of this client for the device goes to one stream, so that results are ready when later work needs them.
    pub stream: Box<dyn Stream>,
    /// The random state of all programs on this device.
    pub random: RandomState,
    /// The program whose effects must come before those of the next one.
    pub effects: Mutex<Work>,
}

impl Client {
    /// Name of the platform.
    pub fn platform(&self) -> &str {
        &self.0.platform
    }

    /// Its devices, at least one.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = Device> + '_ {
        (0..self.0.devices.len()).map(|index| self.device_at(index))
    }

    /// Device number `index` of this client's. [`Error::NotFound`] where there are fewer.
    pub fn device(&self, index: usize) -> Result<Device> {
        let count = self.0.devices.len();
        if index < count {
            return Ok(self.device_at(index));
        }
        Err(Error::not_found(format!("the client has {count} devices, there is no device {index}")))
    }

    /// The first device.
    pub fn first_device(&self) -> Device {
        self.device_at(0)
    }

    /// A device that is known to be there.
    pub(super) fn device_at(&self, index: usize) -> Device {
        Device { client: self.clone(), index }
    }

    /// The first device's memory in use.
    pub fn memory_stats(&self) -> MemoryStats {
        self.first_device().memory_stats()
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

impl Device {
    /// The context of a run on it, whatever its caller wants; with those handlers of custom calls instead of the
    /// client's, if there are any.
    pub(super) fn context<'a>(&'a self, calls: Option<&'a CustomCallRegistry>) -> ExecutionContext<'a> {
        let (client, state) = (&self.client.0, self.state());
        ExecutionContext {
            executor: &*state.executor,
            stream: &*state.stream,
            transfer: &*client.transfer,
            custom_calls: calls.unwrap_or(&client.custom_calls),
            random: &state.random,
            cancel: &client.never,
            run: RunContext::nothing(),
        }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its number among the client's devices.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Description of the device.
    pub fn description(&self) -> &DeviceDescription {
        self.state().executor.description()
    }

    /// Bytes of the last cache in front of the device's memory. [`Error::Unimplemented`] where the platform cannot tell
    /// [times of its devices](crate::LoadedExecutable::device_time).
    pub fn cache_bytes(&self) -> Result<usize> {
        Ok(self.timing()?.cache_bytes())
    }

    pub(super) fn timing(&self) -> Result<&dyn Timing> {
        let timing = self.state().executor.timing();
        timing.ok_or_else(|| self.client.cannot("tell how long work takes on its devices"))
    }

    /// Libraries that work of the device may call, with their versions and files, or why there are none. Opens them.
    pub fn libraries(&self) -> Vec<(String, Result<String>)> {
        self.state().executor.libraries()
    }

    /// The device's memory in use; of parts of a host, that of all of them.
    pub fn memory_stats(&self) -> MemoryStats {
        self.state().executor.memory_stats()
    }

    pub(super) fn state(&self) -> &DeviceState {
        &self.client.0.devices[self.index]
    }

    pub(super) fn stream(&self) -> &dyn Stream {
        &*self.state().stream
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.client.0, &other.client.0) && self.index == other.index
    }
}

impl Eq for Device {}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.first_device().description().ordinal;
        match self.0.devices.len() {
            1 => write!(f, "Client({}, device {first})", self.0.platform),
            count => write!(f, "Client({}, {count} devices)", self.0.platform),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}:{})", self.client.0.platform, self.description().ordinal)
    }
}

impl ClientState {
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
