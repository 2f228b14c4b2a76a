//! Edits that several passes make: new instructions, replaced ones, computations cloned and inlined.

pub(crate) mod async_chain;
pub(crate) mod builder;
pub mod graph;
pub(crate) mod replace;
pub(crate) mod widen;
