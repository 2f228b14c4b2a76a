//! Chooses the processor that platform `cpu` generates code for.

use xla::PlatformRegistry;

/// Options of every subcommand that runs programs on a platform.
#[derive(Debug, clap::Args)]
pub struct TargetArguments {
    /// Platform `cpu` generates code for this processor (`v1` to `v4` of x86-64, `znver4`, `znver5`, `sapphirerapids`),
    /// less the features that this machine lacks; for `compiled:cpu`, which runs no code, for all of it.
    #[arg(long, value_name = "NAME")]
    target_cpu: Option<String>,
    /// Memory that platform `cpu` has written nothing to holds something else each time, and every program is compiled
    /// and run twice: results that depend on it differ.
    #[arg(long)]
    pub sanitize: bool,
}

impl TargetArguments {
    /// The platforms of this build, with `cpu` for the processor that was chosen. The error says that there is no such
    /// processor.
    #[cfg(feature = "cpu")]
    pub fn registry(&self, platform: &str) -> xla::Result<PlatformRegistry> {
        use xla::cpu::{CpuOptions, TargetCpu, platform_with};

        let mut registry = xla::registry();
        if self.name().is_some() || self.sanitize {
            let is_run = !platform.starts_with("compiled:");
            let cpu = match self.name() {
                Some(name) if is_run => TargetCpu::Executable(name.into()),
                Some(name) => TargetCpu::Whole(name.into()),
                None => TargetCpu::Native,
            };
            let chosen = platform_with(CpuOptions { cpu, dirty: self.sanitize, ..CpuOptions::default() });
            chosen.check()?;
            registry.register(chosen);
        }
        Ok(registry)
    }

    /// The platforms of this build, which has no `cpu`.
    #[cfg(not(feature = "cpu"))]
    pub fn registry(&self, _: &str) -> xla::Result<PlatformRegistry> {
        match self.name() {
            None if !self.sanitize => Ok(xla::registry()),
            _ => Err(xla::Error::invalid_argument("--target-cpu and --sanitize need the Cargo feature \"cpu\"")),
        }
    }

    /// LLVM's name of the processor that was chosen.
    pub fn name(&self) -> Option<&str> {
        self.target_cpu.as_deref().map(|name| match name {
            "v1" => "x86-64",
            "v2" => "x86-64-v2",
            "v3" => "x86-64-v3",
            "v4" => "x86-64-v4",
            name => name,
        })
    }

    /// The words that choose the same on another command line.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.name().map(|name| vec!["--target-cpu".to_string(), name.to_string()]).unwrap_or_default();
        words.extend(self.sanitize.then(|| "--sanitize".to_string()));
        words
    }
}
