//! Devices of a client: memory, stream and random state of each, and the state that they share.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use xla_hlo::eval::RandomState;
use xla_hlo::ops::{CustomCallRegistry, RunContext};
use xla_hlo::{ArrayShape, Error, Literal, Result, VerifiedModule};

use super::value::Work;
use crate::cache::CompilationCache;
use crate::cancel::CancelToken;
use crate::collective::{CollectiveEngine, LaunchCounts};
use crate::compiler::Compiler;
use crate::dump;
use crate::executable::{Executable, ExecutionContext};
use crate::executor::{DeviceDescription, MemoryStats, Stream, StreamExecutor, Timing};
use crate::options::CompileOptions;
use crate::panics::panic_message;
use crate::persistent_cache::PersistentCache;
use crate::topology::Topology;
use crate::transfer::TransferManager;
use crate::workers::Workers;

/// Connection to devices of one platform. Clones are handles to the same client; all methods may be called from any
/// thread.
///
/// The devices share compiler, compilation cache, handlers of custom calls and worker threads.
#[derive(Clone)]
pub struct Client(pub(super) Arc<ClientState>);

/// One device of a client. Clones are handles to the same device.
#[derive(Clone)]
pub struct Device {
    client: Client,
    index: usize,
}

/// State shared by all handles of a client.
pub(super) struct ClientState {
    pub platform: String,
    pub compiler: Arc<dyn Compiler>,
    pub transfer: Arc<dyn TransferManager>,
    pub cache: Arc<CompilationCache>,
    pub custom_calls: CustomCallRegistry,
    /// Token for runs that cannot be cancelled.
    pub never: CancelToken,
    /// Threads for programs that do not run on the calling thread. Dropped before the devices: the drop waits for jobs,
    /// which may wait for work of a device.
    pub workers: Arc<Workers>,
    pub devices: Vec<DeviceState>,
    /// Engine of collectives among the devices of this process.
    pub collectives: Arc<dyn CollectiveEngine>,
    /// Engine of collectives among the devices of several processes.
    pub across: Option<Arc<dyn CollectiveEngine>>,
    /// Devices of all processes.
    pub topology: Topology,
    /// Launches of programs over several processes.
    pub launches: LaunchCounts,
    /// Launch ticket: held while a launch over several devices records its runs with side effects on all of them, so
    /// that such launches have one order on all devices.
    pub ticket: Mutex<()>,
    /// Number of programs that were joined into one for the first device.
    pub joined: AtomicU64,
}

pub(super) struct DeviceState {
    pub executor: Arc<dyn StreamExecutor>,
    /// Stream for all work of this client on the device, so that results are ready when later work reads them.
    pub stream: Box<dyn Stream>,
    /// Random state, shared by all programs on this device.
    pub random: RandomState,
    /// Work of the last program with side effects, which must precede the next such program.
    pub effects: Mutex<Work>,
}

impl Client {
    /// Returns the name of the platform.
    pub fn platform(&self) -> &str {
        &self.0.platform
    }

    /// Returns the client's devices in this process, at least one.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = Device> + '_ {
        (0..self.0.devices.len()).map(|index| self.device_at(index))
    }

    /// Returns the device with this global id. [`Error::NotFound`] if it does not exist, [`Error::FailedPrecondition`]
    /// if it belongs to another process.
    pub fn device(&self, id: usize) -> Result<Device> {
        match self.0.topology.local_index(id)? {
            Some(index) => Ok(self.device_at(index)),
            None => {
                let process = self.0.topology.devices()[id].process;
                Err(Error::failed_precondition(format!(
                    "device {id} belongs to process {process}, whose arrays process {} cannot access",
                    self.0.topology.process()
                )))
            }
        }
    }

    /// Returns the devices of all processes.
    pub fn topology(&self) -> &Topology {
        &self.0.topology
    }

    /// Returns the first device of this process.
    pub fn first_device(&self) -> Device {
        self.device_at(0)
    }

    /// Returns a device of this process; `index` must be valid.
    pub(super) fn device_at(&self, index: usize) -> Device {
        Device { client: self.clone(), index }
    }

    /// Returns the memory statistics of the first device.
    pub fn memory_stats(&self) -> MemoryStats {
        self.first_device().memory_stats()
    }

    /// Returns the compilation cache.
    pub fn cache(&self) -> &Arc<CompilationCache> {
        &self.0.cache
    }

    /// Returns the [`Error::Unimplemented`] for a feature that the platform does not support.
    pub(super) fn cannot(&self, what: &str) -> Error {
        Error::unimplemented(format!("platform {} cannot {what}", self.0.platform))
    }
}

impl Device {
    /// Returns the context of a run on this device. `calls`, if given, replaces the client's handlers of custom calls.
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
            logical_device: None,
        }
    }

    /// Returns the client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the device's index among the client's devices in this process.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the device's global id, which is its index in a client of one process.
    pub fn id(&self) -> usize {
        self.client.0.topology.id(self.index)
    }

    /// Returns the description of the device.
    pub fn description(&self) -> &DeviceDescription {
        self.state().executor.description()
    }

    /// Returns the size in bytes of the last-level cache of the device's memory. [`Error::Unimplemented`] if the
    /// platform cannot [measure device times](crate::LoadedExecutable::device_time).
    pub fn cache_bytes(&self) -> Result<usize> {
        Ok(self.timing()?.cache_bytes())
    }

    pub(super) fn timing(&self) -> Result<&dyn Timing> {
        let timing = self.state().executor.timing();
        timing.ok_or_else(|| self.client.cannot("measure how long work takes on its devices"))
    }

    /// Returns the libraries that work on the device may call: name, and version and file or the reason why it is
    /// missing. Opens them.
    pub fn libraries(&self) -> Vec<(String, Result<String>)> {
        self.state().executor.libraries()
    }

    /// Returns the device's memory statistics. Virtual devices of one host share their statistics.
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

/// Returns an error if the literal's element type or dimensions differ from `shape`.
pub(super) fn fits(literal: &Literal, shape: &ArrayShape) -> Result<()> {
    if literal.shape().compatible(&shape.clone().into()) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("expected a literal of {shape}, found one of {}", literal.shape())))
}

/// Runs backend code and converts a panic to an error, so that one bad program does not end the process.
pub(super) fn protect<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // `AssertUnwindSafe`: state that a panic leaves half-finished is dropped, or is consistent after each step like
    // pools and caches.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Error::internal(format!("a backend panicked: {}", panic_message(&*panic)))))
}
