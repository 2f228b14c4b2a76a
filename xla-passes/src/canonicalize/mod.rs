//! Canonicalization: removes calls, asynchronous operations and dynamic shapes. Each loop body then has one call site.

pub(crate) mod dead_code;
mod expand_async;
mod expand_collectives;
mod expand_custom_calls;
pub(crate) mod flatten_call_graph;
mod inline_calls;
mod inline_maps;
mod pad_dynamic;
mod simplify_tokens;
mod simplify_tuples;

pub use dead_code::DeadCode;
pub use expand_async::ExpandAsync;
pub use expand_collectives::ExpandCollectives;
pub use expand_custom_calls::ExpandCustomCalls;
pub use flatten_call_graph::FlattenCallGraph;
pub use inline_calls::InlineCalls;
pub use inline_maps::InlineMaps;
pub use pad_dynamic::PadDynamic;
pub use simplify_tokens::SimplifyTokens;
pub use simplify_tuples::SimplifyTuples;
