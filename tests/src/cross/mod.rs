//! Cross runs: programs of the corpus, compiled ahead of time for other processors, linked without any library, and run
//! by an emulator.
//!
//! ```text
//! case ── xla compile for the target ──> object, description
//!      ── custom_call.rs: a case of its own, with the function of a custom call
//!      ── start.rs: arguments as data, code that calls the program and writes its results, in LLVM IR
//!      ── llc, ld.lld, qemu (run.rs) ──> bytes of the results, compared as everywhere
//! ```
//!
//! `gnu.rs` links a program for triples that have a GNU linker, which is stricter than LLVM's, with that one.

mod custom_call;
mod gnu;
mod run;
mod start;
mod targets;

pub use custom_call::{SUITE as CUSTOM_CALL, case as custom_call};
pub use gnu::{GNU_LINKS, GnuLink};
pub use run::{CrossRun, Verdict};
pub use targets::{CrossTarget, TARGETS};
