//! Tests of pipelines: runs, statistics, fusion decisions, bisection, and of the documentation of passes.

mod bisect;
mod explain;
mod large_fusions;
mod pipeline;
mod profile;
mod reference;
mod registry;
mod statistics;
