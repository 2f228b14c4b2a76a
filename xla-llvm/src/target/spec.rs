//! Target as specified by the user: triple, processor, features, ABI; checked before LLVM sees it.

use xla_hlo::{Error, Result};
use xla_service::Relocation;

use super::host::{self, HostNames};
use super::machine::MachineDescription;
use super::names::Names;
use super::triple::Triple;

/// Name that selects the compiling machine's own processor.
const NATIVE: &str = "native";

/// Specification of a target by names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TargetSpec {
    /// Target triple; `None` for this machine's.
    pub triple: Option<String>,
    /// Processor by LLVM's name, or `native` for this machine's with all its features; `None` for the oldest one that
    /// systems of the triple run on.
    pub cpu: Option<String>,
    /// Features to add (`+avx2`) or remove (`-avx512f`), in order.
    pub features: Vec<String>,
    /// ABI; `None` for the default of the triple and the features.
    pub abi: Option<String>,
    /// Relocation model: how code refers to code and data.
    pub relocation: Relocation,
}

impl TargetSpec {
    /// Resolves the names to a target description for LLVM.
    ///
    /// Fails with [`Error::InvalidArgument`] for a name that LLVM does not know, with the most similar known name.
    pub(super) fn resolve(&self) -> Result<MachineDescription> {
        let triple = Triple::parse(self.triple.as_deref().unwrap_or(&host::names().triple))?;
        let names = Names::of(triple.family);
        for feature in &self.features {
            names.check_feature(feature, &triple.text)?;
        }
        let (cpu, mut features): (String, Vec<String>) = match self.cpu.as_deref() {
            Some(NATIVE) => native(&triple, host::names())?,
            Some(cpu) => {
                names.check_cpu(cpu, &triple.text)?;
                (cpu.to_string(), Vec::new())
            }
            None => {
                let (cpu, features) = triple.baseline();
                (cpu.to_string(), features.iter().map(ToString::to_string).collect())
            }
        };
        features.extend(self.features.iter().cloned());
        self.abi.as_deref().map_or(Ok(()), |abi| triple.check_abi(abi))?;
        Ok(MachineDescription {
            triple: triple.with_version(),
            cpu,
            features: features.join(","),
            abi: self.abi.clone().unwrap_or_default(),
            relocation: self.relocation,
        })
    }
}

/// Returns this machine's processor and features, if the triple has the same architecture.
fn native(triple: &Triple, host: &HostNames) -> Result<(String, Vec<String>)> {
    let architecture = host.triple.split('-').next().unwrap_or_default();
    if architecture != triple.architecture() {
        return Err(Error::invalid_argument(format!(
            "processor {NATIVE:?} is the processor of this machine, which is {architecture}, not {}; name another one",
            triple.text
        )));
    }
    Ok((host.cpu.clone(), host.features.split(',').filter(|f| !f.is_empty()).map(str::to_string).collect()))
}
