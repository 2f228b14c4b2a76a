//! The client: compile modules for a device, move values there and back, run programs.
//!
//! ```text
//! Client::new(&registry, "cpu") ─ compile(&module, &options) ─> LoadedExecutable
//!       │                                                            │
//!       └ buffer(&literal) ──────> Buffer ──── execute(&[&a, &b]) ───┴──> Vec<Buffer> ── to_literal()
//! ```
//!
//! The client checks a program's inputs: number, shapes, layouts, devices, donation; backends get checked inputs only.
//! It catches panics of backends and turns them into [`Error::Internal`](xla_hlo::Error::Internal).

mod buffer;
mod device;
mod dispatch;
mod loaded;
mod slot;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use xla_hlo::eval::RandomState;
use xla_hlo::{Result, VerifiedModule};

pub use buffer::Buffer;
pub use device::Client;
pub use loaded::{Dispatch, ExecuteOptions, LoadedExecutable};

use crate::cache::CompilationCache;
use crate::cancel::CancelToken;
use crate::options::CompileOptions;
use crate::registry::PlatformRegistry;
use device::{Device, protect};

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

    /// Compiles a module, or takes the program from the cache.
    ///
    /// Errors: those of the compiler, and `Error::Unimplemented` for a custom call that the registry, from which the
    /// client was made, has no handler for.
    pub fn compile(&self, module: &VerifiedModule, options: &CompileOptions) -> Result<LoadedExecutable> {
        let device = &self.0;
        device.custom_calls.check(module)?;
        let compile = || protect(|| device.compile(module.clone(), options));
        let executable = device.cache.get_or_compile(&device.platform, module, options, compile)?;
        Ok(LoadedExecutable::new(self.clone(), executable))
    }

    /// Loads a program that [`LoadedExecutable::serialize`] wrote. `Error::Unimplemented` where the platform cannot.
    pub fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<LoadedExecutable> {
        let loader = self.0.compiler.loader().ok_or_else(|| self.cannot("load serialised programs"))?;
        Ok(LoadedExecutable::new(self.clone(), protect(|| loader.load(bytes, options))?))
    }
}
