//! Rewriting: insertion, replacement, cloning and inlining of instructions.

pub(crate) mod async_chain;
pub(crate) mod builder;
pub mod graph;
pub(crate) mod growth;
pub(crate) mod replace;
pub(crate) mod widen;
