//! What passes run in: the trait, pipelines and stages, the table of all passes, and what watches and bisects a run.

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
