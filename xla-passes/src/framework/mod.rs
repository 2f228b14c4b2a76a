//! Pass framework: the trait, pipelines and stages, the registry, observers, statistics, bisection.

pub mod bisect;
pub mod explain;
pub mod fusion_recorder;
pub(crate) mod observer;
pub(crate) mod pass;
mod pass_info;
mod pass_table;
pub(crate) mod pipeline;
pub(crate) mod profile;
pub mod reference;
pub mod registry;
pub mod report;
pub mod stages;
pub mod statistics;
