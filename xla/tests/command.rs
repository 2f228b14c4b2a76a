//! Tests of the `xla` command: output and exit code.

#[path = "command/support.rs"]
mod support;

#[cfg(feature = "cpu")]
#[path = "command/ahead_of_time.rs"]
mod ahead_of_time;
#[path = "command/bench.rs"]
mod bench;
#[path = "command/devices.rs"]
mod devices;
#[path = "command/dynamic.rs"]
mod dynamic;
#[cfg(feature = "gpu")]
#[path = "command/executables.rs"]
mod executables;
#[path = "command/files.rs"]
mod files;
#[cfg(target_os = "linux")]
#[path = "command/hostile.rs"]
mod hostile;
#[cfg(all(feature = "cpu", target_os = "linux"))]
#[path = "command/limits.rs"]
mod limits;
#[path = "command/modules.rs"]
mod modules;
#[cfg(target_os = "linux")]
#[path = "command/outputs.rs"]
mod outputs;
#[path = "command/passes.rs"]
mod passes;
#[path = "command/usage.rs"]
mod usage;
