//! Processor that emulated code was compiled for, and whether this machine can run the code.

use xla_hlo::{Error, Result};
use xla_llvm::target::{Simt, Target};

use crate::program::compiled_for::CompiledFor;

/// Describes a target as serialised programs name it.
pub(crate) fn compiled_for(target: &Target) -> CompiledFor {
    match target.simt() {
        Some(Simt::Nvptx) => CompiledFor::Gpu(target.cpu().to_string()),
        Some(Simt::Host) | None => CompiledFor::Host {
            triple: target.triple().to_string(),
            cpu: target.cpu().to_string(),
            features: has(target.features()).map(str::to_string).collect(),
        },
    }
}

/// Returns [`Error::InvalidArgument`] if the processor of this machine cannot run the code.
pub(crate) fn check(compiled_for: &CompiledFor) -> Result<()> {
    let host = Target::host_threads()?;
    let CompiledFor::Host { triple, features, .. } = compiled_for else {
        return Err(Error::invalid_argument(format!(
            "the program was compiled for {compiled_for}, not for an emulated GPU"
        )));
    };
    if triple != host.triple() {
        return Err(Error::invalid_argument(format!(
            "the program was compiled for {compiled_for}, but this machine is {}",
            host.triple()
        )));
    }
    match features.iter().find(|feature| !has(host.features()).any(|had| had == *feature)) {
        None => Ok(()),
        Some(missing) => Err(Error::invalid_argument(format!(
            "the program was compiled for {compiled_for}, but this processor ({}) lacks {}; compile it on this machine",
            host.cpu(),
            missing.trim_start_matches('+')
        ))),
    }
}

/// Returns the features that a feature list of LLVM enables.
fn has(features: &str) -> impl Iterator<Item = &str> {
    features.split(',').filter(|feature| feature.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_lack_something_are_told() {
        let host = compiled_for(&Target::host_threads().unwrap());
        check(&host).unwrap();
        let CompiledFor::Host { triple, cpu, mut features } = host else { panic!("{host:?}") };
        features.push("+teleport".to_string());
        let error = check(&CompiledFor::Host { triple, cpu, features }).unwrap_err();
        assert!(error.message().contains("lacks teleport"), "{error}");
        let error = check(&CompiledFor::Gpu("sm_80".to_string())).unwrap_err();
        assert_eq!(error.message(), "the program was compiled for GPU sm_80, not for an emulated GPU");
    }
}
