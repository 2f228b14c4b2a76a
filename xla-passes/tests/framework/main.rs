//! Pipelines: runs, fusion decisions, bisection.

mod bisect;
mod explain;
mod pipeline;
