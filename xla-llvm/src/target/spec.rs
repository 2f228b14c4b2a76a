//! A target as a person names it: triple, processor, features, ABI; checked before LLVM sees it.

use xla_hlo::{Error, Result};
use xla_service::Relocation;

use super::host::{self, HostNames};
use super::machine::MachineDescription;
use super::names::Names;
use super::triple::Triple;

/// The processor that stands for the compiling machine's own.
const NATIVE: &str = "native";

/// Names of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TargetSpec {
    /// The triple; `None` for this machine's.
    pub triple: Option<String>,
    /// The processor by LLVM's name, or `native` for this machine's with all its features; `None` for the oldest that
    /// systems of the triple run on.
    pub cpu: Option<String>,
    /// Features to add (`+avx2`) or take away (`-avx512f`), in order.
    pub features: Vec<String>,
    /// The ABI; `None` for the triple's and the features'.
    pub abi: Option<String>,
    /// The way in which code refers to code and data.
    pub relocation: Relocation,
}

impl TargetSpec {
    /// The target for LLVM. [`Error::InvalidArgument`] for a name that LLVM does not know, with the nearest one.
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

/// This machine's processor, if the triple is of its kind.
fn native(triple: &Triple, host: &HostNames) -> Result<(String, Vec<String>)> {
    let architecture = host.triple.split('-').next().unwrap_or_default();
    if architecture != triple.architecture() {
        return Err(Error::invalid_argument(format!(
            "processor {NATIVE:?} is this machine's, an {architecture}, and not one of {}; name another",
            triple.text
        )));
    }
    Ok((host.cpu.clone(), host.features.split(',').filter(|f| !f.is_empty()).map(str::to_string).collect()))
}
