//! The client: compile modules for a device, move values there and back, run programs.
//!
//! ```text
//! Client::new(&registry, "cpu") ─ compile(&module, &options) ─> LoadedExecutable
//!       │                                                            │
//!       └ buffer(&literal) ──────> Buffer ──── execute(&[&a, &b]) ───┴──> Vec<Buffer> ── to_literal()
//! ```
//!
//! Each value is shared by those who use it: its buffer, programs launched with it, holds, views. A program that it is
//! donated to writes to it only if it has the last share, so nobody sees another's changes, and nobody waits for
//! another. Programs start when their arguments are there, whatever the order of the calls; callbacks, handlers and
//! deleters are called without any lock held, and may do all that their callers may.
//!
//! The client checks a program's inputs: number, shapes, layouts, devices, donation; backends get checked inputs only.
//! It catches panics of backends and turns them into [`Error::Internal`].

mod buffer;
mod completion;
mod copy;
mod create;
mod device;
mod device_time;
mod inputs;
mod joined;
mod launch;
mod loaded;
mod options;
mod parts;
mod run;
mod sizes;
#[cfg(test)]
mod tests;
mod value;

use std::sync::{Arc, Mutex};

use xla_hlo::eval::RandomState;
use xla_hlo::ops::CustomCallRegistry;
use xla_hlo::{Error, Result, VerifiedModule};
use xla_passes::join::is_for_several_devices;

pub use buffer::{Buffer, BufferHold};
pub use completion::{Completer, Completion};
pub use create::{BufferPromise, StagedBuffer};
pub use device::{Client, Device};
pub use device_time::DeviceTimes;
pub use launch::DeviceResults;
pub use loaded::LoadedExecutable;
pub use options::{Dispatch, Donate, ExecuteOptions};

use crate::cache::CompilationCache;
use crate::cancel::CancelToken;
use crate::executor::StreamExecutor;
use crate::forked;
use crate::options::CompileOptions;
use crate::platform::Platform;
use crate::registry::PlatformRegistry;
use crate::workers::{Workers, host_call};
use device::{ClientState, DeviceState, protect};

/// Options of a client.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Devices, from the platform's first on; `None` for all that the machine has. Platforms of the host have as many
    /// as they are asked for.
    pub devices: Option<usize>,
    /// The compilation cache, which may be shared with other clients.
    pub cache: Arc<CompilationCache>,
}

impl Client {
    /// A client of the platform's first device, with a compilation cache of its own.
    pub fn new(registry: &PlatformRegistry, platform: &str) -> Result<Client> {
        Client::for_device(registry, platform, 0, Arc::default())
    }

    /// A client of device `ordinal`, with a compilation cache that may be shared with other clients.
    ///
    /// Errors: `Error::NotFound` for an unknown platform or device, `Error::FailedPrecondition` where the machine
    /// cannot run it.
    pub fn for_device(
        registry: &PlatformRegistry,
        platform: &str,
        ordinal: usize,
        cache: Arc<CompilationCache>,
    ) -> Result<Client> {
        let platform = registry.get(platform)?;
        Client::over(registry, &*platform, vec![platform.executor(ordinal)?], cache)
    }

    /// A client over several devices. Errors as of [`Client::for_device`].
    pub fn with_options(registry: &PlatformRegistry, platform: &str, options: ClientOptions) -> Result<Client> {
        let platform = registry.get(platform)?;
        Client::over(registry, &*platform, platform.executors(options.devices)?, options.cache)
    }

    fn over(
        registry: &PlatformRegistry,
        platform: &dyn Platform,
        executors: Vec<Arc<dyn StreamExecutor>>,
        cache: Arc<CompilationCache>,
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
        let threads = std::thread::available_parallelism().map_or(1, usize::from).max(devices.len());
        Ok(Client(Arc::new(ClientState {
            platform: platform.name().to_string(),
            compiler: platform.compiler(),
            transfer: platform.transfer_manager(),
            cache,
            custom_calls: registry.custom_calls().clone().with_calls_inside(host_call_of),
            never: CancelToken::never(),
            devices,
            workers: Arc::new(Workers::new(platform.name(), threads)),
        })))
    }

    /// Compiles a module for the first device, or takes the program from the cache. A module for several devices that
    /// work together is compiled for as many of the client's first ones, of which the first does the work of all.
    ///
    /// Errors: those of the compiler, and `Error::Unimplemented` for a custom call that the registry, from which the
    /// client was made, has no handler for.
    pub fn compile(&self, module: &VerifiedModule, options: &CompileOptions) -> Result<LoadedExecutable> {
        forked::check()?;
        if is_for_several_devices(module) {
            return self.compile_joined(module, options);
        }
        self.compile_for_one(module, options)
    }

    fn compile_for_one(&self, module: &VerifiedModule, options: &CompileOptions) -> Result<LoadedExecutable> {
        let state = &self.0;
        let compile = || protect(|| state.compile(module.clone(), options));
        let executable = state.cache.get_or_compile(&state.platform, module, options, compile)?;
        // Of what is left: programs for several platforms have branches for others, which are never taken.
        state.custom_calls.check(executable.module())?;
        LoadedExecutable::new(self.clone(), executable)
    }

    /// The handlers of custom calls, for registering more while the client lives: programs that are compiled or loaded
    /// from then on find them.
    pub fn custom_calls(&self) -> &CustomCallRegistry {
        &self.0.custom_calls
    }

    /// Loads a program that [`LoadedExecutable::serialize`] wrote. `Error::Unimplemented` where the platform cannot.
    ///
    /// The bytes may hold machine code, which runs in this process or on the device as it is: load only bytes from an
    /// origin that may run any program as this user. A checksum finds damaged bytes, not forged ones.
    pub fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<LoadedExecutable> {
        forked::check()?;
        let loader = self.0.compiler.loader().ok_or_else(|| self.cannot("load serialised programs"))?;
        LoadedExecutable::new(self.clone(), protect(|| loader.load(bytes, options))?)
    }
}

/// Runs a handler of a custom call.
fn host_call_of(handler: &mut dyn FnMut()) {
    host_call(handler);
}
