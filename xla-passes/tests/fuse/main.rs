//! Tests of fusion plans: the kernels of small programs, with sizes and limits on both sides of each decision.

mod attention;
mod plan;
mod plans;
#[path = "../passes/profiles.rs"]
mod profiles;
mod thresholds;
