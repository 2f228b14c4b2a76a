//! Tests of the evaluator: elementwise operations, control flow and random bits, against tables and definitions.

mod complex;
mod control_flow;
mod conversions;
mod float_formats;
mod integers;
mod parallel;
mod random;
mod reals;
mod shape_rules;
mod support;
mod threads;
