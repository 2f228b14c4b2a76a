//! Tests of the evaluator over a grid: programs with collectives in `programs`, results in `snapshots`, laws.

mod laws;
mod limits;
mod modules;
mod programs;
mod support;
