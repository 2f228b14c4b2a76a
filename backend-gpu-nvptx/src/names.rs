//! Names of the platforms of this crate.

/// The name of the platform of NVIDIA's GPUs.
pub const NAME: &str = "gpu";

/// The name of the platform that emulates a GPU on the host.
#[cfg(feature = "compile")]
pub const EMULATED_NAME: &str = "gpu-emulated";
