//! Names of the platforms of this crate.

/// Name of the platform of NVIDIA GPUs.
pub const NAME: &str = "gpu";

/// Name of the platform that emulates a GPU on the host.
#[cfg(feature = "compile")]
pub const EMULATED_NAME: &str = "gpu-emulated";
