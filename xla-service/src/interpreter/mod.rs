//! The `interpreter` platform: the reference evaluator as the smallest backend that takes whole graphs.
//!
//! It compiles nothing: the passes return the module unchanged, and a run evaluates the entry computation on literals.
//! It serves as a reference for programs, and as an example of a backend.

mod compiler;
mod executable;
mod executor;
mod platform;
mod transfer;

pub use platform::{NAME, platform};
