//! Pipelines: how they run, what they tell, how they are bisected.

mod bisect;
mod explain;
mod pipeline;
