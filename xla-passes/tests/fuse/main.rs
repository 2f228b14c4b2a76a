//! Tests of fusion plans: the kernels of small programs, with sizes and limits on both sides of each decision. Also of
//! the order and the accesses that fusion maintains.

mod access;
mod attention;
mod order;
mod plan;
mod plans;
#[path = "../passes/profiles.rs"]
mod profiles;
mod thresholds;
