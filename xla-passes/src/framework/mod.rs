//! Pass framework: the trait, pipelines and stages, the registry, observers, bisection.

pub mod bisect;
pub mod explain;
pub mod fusion_recorder;
pub(crate) mod observer;
pub(crate) mod pass;
pub(crate) mod pipeline;
pub(crate) mod profile;
pub mod registry;
pub mod report;
pub mod stages;
