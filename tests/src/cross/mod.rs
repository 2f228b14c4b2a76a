//! Cross runs: programs of the corpus are compiled ahead of time for other processors, linked without any library, and
//! run in an emulator.
//!
//! ```text
//! case ── xla compile for the target ──> object, description
//!      ── custom_call.rs: separate case with the function of a custom call
//!      ── start.rs: arguments as data, code that calls the program and writes its results, in LLVM IR
//!      ── llc, ld.lld, qemu (run.rs) ──> bytes of the results, compared as in other tests
//! ```
//!
//! `gnu.rs` links a program with GNU ld for triples that have one, since it is stricter than LLVM's linker.

mod custom_call;
mod gnu;
mod run;
mod start;
mod targets;

pub use custom_call::{SUITE as CUSTOM_CALL, case as custom_call};
pub use gnu::{GNU_LINKS, GnuLink};
pub use run::{CrossRun, Verdict};
pub use targets::{CrossTarget, TARGETS};
