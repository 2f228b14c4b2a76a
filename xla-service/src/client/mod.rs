//! Client: compiles modules for devices, transfers values, runs programs.
//!
//! ```text
//! Client::new(&registry, "cpu") ─ compile(&module, &options) ─> LoadedExecutable
//!       │                                                            │
//!       └ buffer(&literal) ──────> Buffer ──── execute(&[&a, &b]) ───┴──> Vec<Buffer> ── to_literal()
//! ```
//!
//! All users of a value share it: its buffer, the programs launched with it, holds and views. A program writes to a
//! donated value only if it has the last share. Therefore no user observes another user's writes, and no user waits for
//! another. Programs start when their arguments are available, independently of the order of the calls. Callbacks,
//! handlers and deleters are called without any lock held, and may call everything that their callers may.
//!
//! The client checks a program's inputs: number, shapes, layouts, devices, donation. Backends receive only checked
//! inputs. The client catches panics of backends and converts them to [`Error::Internal`].

mod assignment;
mod buffer;
mod completion;
mod copy;
mod create;
mod device;
mod device_time;
mod inputs;
mod job;
mod joined;
mod launch;
mod loaded;
mod member;
mod options;
mod per_device;
mod processes;
mod run;
mod shards;
mod sizes;
#[cfg(test)]
mod tests;
mod value;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use xla_hlo::eval::RandomState;
use xla_hlo::ops::CustomCallRegistry;
use xla_hlo::{Error, Result, VerifiedModule};
use xla_passes::{Localized, ProgramForm, localize, localize_by_gathers, program_form};

pub use buffer::{Buffer, BufferHold};
pub use completion::{Completer, Completion};
pub use create::{BufferPromise, StagedBuffer};
pub use device::{Client, Device};
pub use device_time::DeviceTimes;
pub use launch::DeviceResults;
pub use loaded::LoadedExecutable;
pub use options::{Dispatch, Donate, ExecuteOptions};
pub use processes::{Connector, ProcessOptions};

use crate::cache::CompilationCache;
use crate::cancel::CancelToken;
use crate::collective::{InProcess, LaunchCounts, Timeouts};
use crate::executor::StreamExecutor;
use crate::forked;
use crate::options::CompileOptions;
use crate::platform::Platform;
use crate::registry::PlatformRegistry;
use crate::serialized;
use crate::topology::Topology;
use crate::workers::{Workers, host_call};
use assignment::Assignment;
use device::{ClientState, DeviceState, protect};

/// Options of a client.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Number of devices, starting with the platform's first; `None` for all devices of the machine. Host platforms
    /// provide any number of devices.
    pub devices: Option<usize>,
    /// Compilation cache, which other clients may share.
    pub cache: Arc<CompilationCache>,
    /// Maximum times that a device waits for the others in a collective: 20 s until a warning and 40 s until an error,
    /// unless changed. Devices whose steps between collectives differ by more time need longer ones.
    pub collective_timeouts: Timeouts,
    /// Processes of a job whose devices cooperate; `None` for a client of a single process.
    pub processes: Option<ProcessOptions>,
}

impl Client {
    /// Creates a client of the platform's first device, with its own compilation cache.
    pub fn new(registry: &PlatformRegistry, platform: &str) -> Result<Client> {
        Client::for_device(registry, platform, 0, Arc::default())
    }

    /// Creates a client of device `ordinal`, with a compilation cache that other clients may share.
    ///
    /// Errors: `Error::NotFound` for an unknown platform or device, `Error::FailedPrecondition` if the machine cannot
    /// run the platform.
    pub fn for_device(
        registry: &PlatformRegistry,
        platform: &str,
        ordinal: usize,
        cache: Arc<CompilationCache>,
    ) -> Result<Client> {
        let platform = registry.get(platform)?;
        let options = ClientOptions { cache, ..ClientOptions::default() };
        Client::over(registry, &*platform, vec![platform.executor(ordinal)?], options)
    }

    /// Creates a client of several devices. Errors are those of [`Client::for_device`].
    pub fn with_options(registry: &PlatformRegistry, platform: &str, options: ClientOptions) -> Result<Client> {
        let platform = registry.get(platform)?;
        Client::over(registry, &*platform, platform.executors(options.devices)?, options)
    }

    fn over(
        registry: &PlatformRegistry,
        platform: &dyn Platform,
        executors: Vec<Arc<dyn StreamExecutor>>,
        options: ClientOptions,
    ) -> Result<Client> {
        forked::check()?;
        forked::watch()?;
        if executors.is_empty() {
            return Err(Error::invalid_argument("a client must have at least one device"));
        }
        let device = |executor: Arc<dyn StreamExecutor>| {
            let (stream, random, effects) = (executor.create_stream()?, RandomState::new(), Mutex::default());
            Ok(DeviceState { stream, executor, random, effects })
        };
        let devices = executors.into_iter().map(device).collect::<Result<Vec<_>>>()?;
        let models = devices.iter().map(|device| device.executor.description().model.clone()).collect();
        let (topology, across) = match options.processes.filter(|processes| processes.processes > 1) {
            None => (Topology::of_one_process(models), None),
            Some(processes) => {
                let (topology, engine) = processes.connect(platform.name(), models)?;
                (topology, Some(engine))
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).max(devices.len());
        Ok(Client(Arc::new(ClientState {
            platform: platform.name().to_string(),
            compiler: platform.compiler(),
            transfer: platform.transfer_manager(),
            cache: options.cache,
            custom_calls: registry.custom_calls().clone().with_calls_inside(host_call_of),
            never: CancelToken::never(),
            workers: Arc::new(Workers::new(platform.name(), threads)),
            devices,
            collectives: Arc::new(InProcess::new(options.collective_timeouts)),
            across,
            topology,
            launches: LaunchCounts::default(),
            ticket: Mutex::default(),
            joined: AtomicU64::new(0),
        })))
    }

    /// Compiles a module for the first device, or returns the program from the cache. A module for several cooperating
    /// devices is compiled for the client's first devices: once for all of them if the platform has collectives and
    /// each device runs it on [its own values](ProgramForm::PerDevice) or [its parts of values](localize), otherwise
    /// joined into one program, which the first device executes.
    ///
    /// Errors: those of the compiler, and `Error::Unimplemented` for a custom call without a handler in the registry of
    /// the client.
    pub fn compile(&self, module: &VerifiedModule, options: &CompileOptions) -> Result<LoadedExecutable> {
        self.compile_where(module, options, self.0.across.is_some())
    }

    /// Compiles a module for devices, given by their [global ids](Device::id), as [`compile`](Client::compile) does for
    /// the first ones. If they all belong to this process, no program is changed so that devices of several processes
    /// can run it.
    ///
    /// Errors: those of `compile` and [`LoadedExecutable::on_devices`].
    pub fn compile_on(
        &self,
        module: &VerifiedModule,
        devices: &[usize],
        options: &CompileOptions,
    ) -> Result<LoadedExecutable> {
        let has_remote = Assignment::new(self, devices)?.has_remote();
        self.compile_where(module, options, has_remote)?.on_devices(devices)
    }

    /// Compiles a module. `may_be_remote` states whether some of its devices may belong to other processes.
    fn compile_where(
        &self,
        module: &VerifiedModule,
        options: &CompileOptions,
        may_be_remote: bool,
    ) -> Result<LoadedExecutable> {
        forked::check()?;
        // Refusal of a program on global values, which gathers may still split if it cannot be joined.
        let mut refusal = None;
        let reason = match protect(|| Ok(program_form(module)))? {
            ProgramForm::OneDevice => return self.compile_for_one(module, options),
            _ if !self.0.compiler.has_collectives() => "the platform has no collectives".to_string(),
            ProgramForm::PerDevice => return self.compile_per_device(module, None, options),
            ProgramForm::Global(values) => match protect(|| localize(module)) {
                Ok(local) => return self.compile_per_device(module, Some(local), options),
                Err(error) if may_be_remote => match protect(|| gather(module, &error)) {
                    Ok(local) => return self.compile_per_device(module, Some(local), options),
                    Err(error) => format!("{values}; {error}"),
                },
                Err(error) => {
                    let reason = format!("{values}; {error}");
                    refusal = Some(error).filter(|_| self.0.across.is_some());
                    reason
                }
            },
        };
        let joined = self.0.joined.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::info!(module = module.name(), %reason, joined, "a program is joined for its first device");
        let program = self.compile_joined(module, reason, options);
        let (Err(error), Some(refusal)) = (&program, refusal) else { return program };
        tracing::info!(module = module.name(), %error, "a program cannot be joined, its values are gathered");
        match protect(|| gather(module, &refusal)) {
            Ok(local) => self.compile_per_device(module, Some(local), options),
            // The first error names the cause for local devices.
            Err(_) => program,
        }
    }

    /// Returns the number of multi-device programs that this client has joined into one program for the first device.
    pub fn joined_programs(&self) -> u64 {
        self.0.joined.load(Ordering::Relaxed)
    }

    fn compile_for_one(&self, module: &VerifiedModule, options: &CompileOptions) -> Result<LoadedExecutable> {
        let state = &self.0;
        let compile = || protect(|| state.compile(module.clone(), options));
        let executable = state.cache.get_or_compile(&state.platform, module, options, compile)?;
        // Checked after the passes: modules for several platforms contain branches for the others, which the passes
        // remove.
        state.custom_calls.check(executable.module())?;
        LoadedExecutable::new(self.clone(), executable)
    }

    /// Returns the handlers of custom calls. More handlers can be registered while the client is in use; programs
    /// compiled or loaded later find them.
    pub fn custom_calls(&self) -> &CustomCallRegistry {
        &self.0.custom_calls
    }

    /// Loads a program that [`LoadedExecutable::serialize`] wrote. `Error::Unimplemented` if the platform does not
    /// support it, and for a program that several devices execute together.
    ///
    /// The bytes may contain machine code, which runs unchanged in this process or on the device. Load only bytes from
    /// an origin that may run any program as this user. The checksum detects damaged bytes, not forged ones.
    pub fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<LoadedExecutable> {
        forked::check()?;
        let loader = self.0.compiler.loader().ok_or_else(|| self.cannot("load serialised programs"))?;
        let executable = protect(|| {
            let executable = loader.load(bytes, options)?;
            serialized::check_independent(executable.module())?;
            Ok(executable)
        });
        LoadedExecutable::new(self.clone(), executable?)
    }
}

/// Runs a handler of a custom call as a host call.
fn host_call_of(handler: &mut dyn FnMut()) {
    host_call(handler);
}

/// Converts a program that [`localize`] refuses with this error, for devices of several processes: they exchange
/// values, since no device can do the work of devices in other processes.
fn gather(module: &VerifiedModule, refusal: &Error) -> Result<Localized> {
    let local = localize_by_gathers(module)?;
    tracing::info!(module = module.name(), reason = %refusal, "devices gather values that they cannot keep in parts");
    Ok(local)
}
