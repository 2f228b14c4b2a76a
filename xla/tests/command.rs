//! The `xla` command from outside: what it prints, and the exit code.

#[path = "command/support.rs"]
mod support;

#[path = "command/bench.rs"]
mod bench;
#[path = "command/files.rs"]
mod files;
#[path = "command/modules.rs"]
mod modules;
#[path = "command/passes.rs"]
mod passes;
#[path = "command/usage.rs"]
mod usage;
