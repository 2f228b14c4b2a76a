//! Session of a subcommand: common options, platforms, and state of the process.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use xla::hlo::{Error, Result};
use xla::service::Platform;
use xla::{Client, CompileOptions, OptLevel, PlatformRegistry};

use super::failure::{BadInput, Failure, Outcome};
use super::program::Stored;
use super::{threads, trace};

/// Default platform, if this build has it; otherwise, the first one is used.
const PREFERRED: &str = "cpu";

/// Options of every subcommand.
#[derive(Args, Debug)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// Dump the output of every compilation stage into this directory, or into DIR/NAME for each of several --cpu
    #[arg(long, global = true, value_name = "DIR")]
    dump_to: Option<PathBuf>,
    /// Write a trace of passes, compile stages and kernels; open it with Perfetto or chrome://tracing
    #[arg(long, global = true, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Optimisation level: 0 = only required lowering, 2 = default
    #[arg(short = 'O', long, global = true, value_name = "LEVEL", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=3))]
    opt_level: u8,
    /// Maximum number of threads (bench: only the process's first N CPUs)
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Maximum device memory of one execution in bytes, arguments and results included
    #[arg(long, global = true, value_name = "BYTES")]
    memory_limit: Option<u64>,
    /// Directory of compiled programs and measurements, or `none` [default: the user's cache, measurements only]
    #[arg(long, global = true, value_name = "DIR", env = "XLA_CACHE_DIR", hide_env = true)]
    cache_dir: Option<PathBuf>,
    /// Disable GPU autotuning, and compile no alternatives for it
    #[arg(long, global = true, env = "XLA_NO_AUTOTUNE", hide_env = true, value_parser = clap::builder::FalseyValueParser::new())]
    no_autotune: bool,
    /// Launch kernels separately on GPUs instead of as graphs
    #[arg(long, global = true)]
    no_graphs: bool,
    /// NVTX library of a profiler, to show executions and thunks on GPUs as ranges; profilers set it themselves
    #[arg(long, global = true, value_name = "FILE", env = "NVTX_INJECTION64_PATH", hide_env = true)]
    nvtx_library: Option<PathBuf>,
    /// Allow TF32 for f32 matmuls of default precision on GPUs: 10-bit mantissas, faster
    #[arg(long, global = true)]
    allow_tf32: bool,
    /// Flush subnormal operands and results of floating-point arithmetic to zero, if the platform supports it
    #[arg(long, global = true)]
    flush_denormals: bool,
    /// Round bf16 and f16 after each operation instead of once per chain of operations in a kernel
    #[arg(long, global = true)]
    no_excess_precision: bool,
    /// Log to standard error; repeat for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Option that names a platform.
#[derive(Args, Debug)]
pub struct PlatformArg {
    /// Platform; `xla platforms` lists those of this build [default: cpu if there is one]
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
}

/// Context of a subcommand.
pub struct Session {
    common: Common,
    /// Guard that keeps the trace file open until the command ends.
    trace: Option<trace::Guard>,
}

impl Session {
    /// Starts logging and tracing, unless this process `starts_child`; the child process then does both.
    pub fn new(common: Common, starts_child: bool) -> Outcome<Session> {
        let trace = match starts_child {
            true => None,
            false => trace::start(common.trace.as_deref(), common.verbose).bad_input()?,
        };
        Ok(Session { common, trace })
    }

    /// Completes the trace file. A trace that cannot be written is a failure.
    pub fn finish(self) -> Outcome {
        Ok(self.trace.map_or(Ok(()), trace::Guard::finish)?)
    }

    /// Creates a new registry of this build's platforms, which shares no state with others.
    pub fn registry(&self) -> PlatformRegistry {
        #[cfg_attr(not(feature = "gpu-run"), expect(unused_mut, reason = "there is nothing to replace"))]
        let mut registry = xla::registry();
        #[cfg(feature = "gpu-run")]
        if self.common.nvtx_library.is_some() {
            registry
                .register(xla::gpu::platform_with(xla::gpu::GpuOptions { profiler: self.common.nvtx_library.clone() }));
        }
        registry
    }

    /// Creates a registry as [`Session::registry`] does, with LLVM's code generators for all processors in platform
    /// `cpu`.
    pub fn registry_for_files(&self) -> PlatformRegistry {
        #[cfg_attr(not(feature = "cpu"), expect(unused_mut, reason = "there is nothing to replace"))]
        let mut registry = self.registry();
        #[cfg(feature = "cpu")]
        registry.register(xla::cpu::platform_with(xla::cpu::CpuOptions {
            generators: xla::cpu::CodeGenerators::all(),
            ..Default::default()
        }));
        registry
    }

    /// Returns the requested platform, whether or not this machine supports it.
    pub fn platform(&self, registry: &PlatformRegistry, arg: &PlatformArg) -> Outcome<std::sync::Arc<dyn Platform>> {
        registry.get(&self.platform_name(registry, arg)?).bad_input()
    }

    /// Creates a client of the requested platform. A platform that this machine does not support is a failure, not bad
    /// usage.
    pub fn client(&self, registry: &PlatformRegistry, arg: &PlatformArg) -> Outcome<Client> {
        let platform = self.platform(registry, arg)?;
        Ok(Client::new(registry, platform.name())?)
    }

    /// Creates a client for a compiled program. The program states its platform; the option may name the same one, and
    /// must do so if the file contains host code.
    pub fn client_for(&self, registry: &PlatformRegistry, arg: &PlatformArg, stored: &Stored) -> Outcome<Client> {
        let name = stored.platform()?;
        if let Some(asked) = arg.platform.as_ref().filter(|asked| **asked != name) {
            return Err(Failure::usage(format!("{} is for platform {name}, not for {asked}", stored.path().display())));
        }
        let platform = registry.get(&name).bad_input()?;
        let compiler = platform.compiler();
        if arg.platform.is_none() && compiler.loader().is_some_and(|loader| loader.holds_host_code()) {
            return Err(Failure::usage(format!(
                "{} holds machine code that would run on this machine with your rights; if you trust its origin, add \
                 --platform {name}",
                stored.path().display()
            )));
        }
        Ok(Client::new(registry, platform.name())?)
    }

    fn platform_name(&self, registry: &PlatformRegistry, arg: &PlatformArg) -> Outcome<String> {
        let names = || registry.platforms().iter().map(|p| p.name());
        let default = names().find(|name| *name == PREFERRED).or_else(|| names().next()).map(str::to_string);
        arg.platform.clone().or(default).ok_or_else(|| Failure::usage("this build has no platform"))
    }

    /// Returns the options of compilations.
    pub fn compile_options(&self) -> CompileOptions {
        let threads = self.common.threads.and_then(|n| NonZeroUsize::new(usize::from(n)));
        let memory_limit = self.common.memory_limit;
        let opt_level = match self.common.opt_level {
            0 => OptLevel::O0,
            1 => OptLevel::O1,
            2 => OptLevel::O2,
            _ => OptLevel::O3,
        };
        CompileOptions {
            opt_level,
            dump_to: self.common.dump_to.clone(),
            threads,
            memory_limit,
            cache_dir: self.cache_dir(),
            cache_programs: self.common.cache_dir.is_some(),
            autotune: !self.common.no_autotune,
            graphs: !self.common.no_graphs,
            allow_tf32: self.common.allow_tf32,
            flush_denormals: self.common.flush_denormals,
            excess_precision: !self.common.no_excess_precision,
            ..CompileOptions::default()
        }
    }

    /// Returns the cache directory of backends: from the options, otherwise from the environment. This is the only use
    /// of these environment variables.
    fn cache_dir(&self) -> Option<PathBuf> {
        match self.common.cache_dir.as_deref() {
            Some(folder) if folder == Path::new("none") => None,
            Some(folder) => Some(folder.to_path_buf()),
            None => {
                let [caches, home] = ["XDG_CACHE_HOME", "HOME"].map(std::env::var_os);
                user_cache(caches.as_deref().map(Path::new), home.as_deref().map(Path::new))
            }
        }
    }

    /// Pins the process to the number of CPUs in the options; returns the number of available CPUs.
    pub fn pin(&self) -> Result<usize> {
        self.common.threads.map_or(Ok(()), |n| threads::pin(usize::from(n)))?;
        let available = std::thread::available_parallelism();
        available.map(NonZeroUsize::get).map_err(|e| Error::internal(format!("the number of CPUs is unknown: {e}")))
    }
}

/// Returns the cache directory of the user according to freedesktop.org: in `caches` (`XDG_CACHE_HOME`) if that is an
/// absolute path, otherwise in `.cache` of `home`.
fn user_cache(caches: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let caches = caches.filter(|path| path.is_absolute()).map(Path::to_path_buf);
    let caches = caches.or_else(|| home.filter(|path| path.is_absolute()).map(|home| home.join(".cache")));
    caches.map(|caches| caches.join("xla"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_cache_follows_the_rules() {
        let folder = |caches, home| user_cache(Option::map(caches, Path::new), Option::map(home, Path::new));
        assert_eq!(folder(Some("/caches"), Some("/me")), Some(PathBuf::from("/caches/xla")));
        assert_eq!(folder(Some("relative"), Some("/me")), Some(PathBuf::from("/me/.cache/xla")));
        assert_eq!(folder(None, Some("")), None);
    }
}
