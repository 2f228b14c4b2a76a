//! Choice of the processor that platform `cpu` generates code for.

use xla::PlatformRegistry;

/// Options of every subcommand that runs programs on a platform.
#[derive(Debug, clap::Args)]
pub struct TargetArguments {
    /// Processor that platform `cpu` generates code for (`v1` to `v4` of x86-64, `znver4`, `znver5`, `sapphirerapids`),
    /// without the features that this machine lacks; `compiled:cpu`, which runs no code, uses all features.
    #[arg(long, value_name = "NAME")]
    target_cpu: Option<String>,
    /// Fill uninitialised memory of platform `cpu` with different values each time, and compile and run every program
    /// twice: results that depend on such memory differ.
    #[arg(long)]
    pub sanitize: bool,
}

impl TargetArguments {
    /// Returns the platforms of this build, with `cpu` for the chosen processor. Returns an error if there is no such
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

    /// Returns the platforms of this build, which does not include `cpu`.
    #[cfg(not(feature = "cpu"))]
    pub fn registry(&self, _: &str) -> xla::Result<PlatformRegistry> {
        match self.name() {
            None if !self.sanitize => Ok(xla::registry()),
            _ => Err(xla::Error::invalid_argument("--target-cpu and --sanitize need the Cargo feature \"cpu\"")),
        }
    }

    /// Returns LLVM's name of the chosen processor.
    pub fn name(&self) -> Option<&str> {
        self.target_cpu.as_deref().map(|name| match name {
            "v1" => "x86-64",
            "v2" => "x86-64-v2",
            "v3" => "x86-64-v3",
            "v4" => "x86-64-v4",
            name => name,
        })
    }

    /// Returns the arguments of a command line that makes the same choice.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.name().map(|name| vec!["--target-cpu".to_string(), name.to_string()]).unwrap_or_default();
        words.extend(self.sanitize.then(|| "--sanitize".to_string()));
        words
    }
}
