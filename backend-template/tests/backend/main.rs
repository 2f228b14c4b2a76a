//! Tests of the whole backend: lowerings against the reference evaluator, and the platform through its traits.

mod lowering;
mod platform;
mod streams;
mod support;
