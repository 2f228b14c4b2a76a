//! Tests of pipelines: runs, fusion decisions, bisection.

mod bisect;
mod explain;
mod large_fusions;
mod pipeline;
