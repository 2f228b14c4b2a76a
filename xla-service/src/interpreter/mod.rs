//! The `interpreter` platform: the reference evaluator as the smallest backend that takes whole graphs.
//!
//! It compiles nothing: passes leave the module alone, and running means evaluating the entry computation on literals.
//! Use it as a reference for programs, and read it as an example of a backend.

mod compiler;
mod executable;
mod executor;
mod platform;
mod transfer;

pub use platform::{NAME, platform};
