//! The `interpreter` platform: the reference evaluator as the smallest backend that takes whole graphs.
//!
//! It compiles nothing: passes leave the module alone, and running means evaluating the entry computation on literals.
//! Use it to see what a program means, and read it to see what a backend is made of.

mod compiler;
mod executable;
mod executor;
mod platform;
mod transfer;

pub use platform::{NAME, platform};
