//! Tests that compare emulated kernels with the reference evaluator.

pub(crate) mod attention;
mod attention_gradients;
mod contractions;
mod excess_precision;
mod linalg;
mod loops;
mod picking;
mod random;
mod reductions;
mod rows;
mod scan;
mod scatter;
mod sorting;
mod tf32;
pub(crate) mod warp_groups;
mod widths;

/// Runs a program on `gpu-emulated` and in the evaluator; all of it must run in kernels.
fn agrees(text: &str) {
    xla_tests::agreement::assert_agrees(backend_gpu_nvptx::emulated_platform(), text);
}

#[test]
fn programs_of_every_platform_run_in_kernels() {
    xla_tests::agreement::assert_native(backend_gpu_nvptx::emulated_platform());
}
