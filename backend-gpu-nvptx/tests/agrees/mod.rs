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

/// Runs programs of the conformance kit that cover kernels of this backend. `cargo xtask ci` runs the kit on the
/// simulated GPU, but not on `gpu-emulated`.
#[test]
fn programs_of_the_kit_agree() {
    for text in [
        include_str!("../../../tests/conformance/programs/kernels/convolution_with_bias_and_tanh.hlo"),
        include_str!("../../../tests/conformance/programs/kernels/matmul_of_bf16_scaled.hlo"),
        include_str!("../../../tests/conformance/programs/kernels/reduce_of_complex_numbers_and_of_floats.hlo"),
        include_str!(
            "../../../tests/conformance/programs/kernels/scatters_of_several_arrays_and_of_their_operands.hlo"
        ),
        include_str!("../../../tests/conformance/programs/kernels/skinny_matmul_of_integer_weights.hlo"),
        include_str!("../../../tests/conformance/programs/kernels/sort_of_nan_and_zeros_in_total_order.hlo"),
        include_str!("../../../tests/conformance/programs/kernels/topk_of_extreme_integers.hlo"),
        include_str!("../../../tests/conformance/programs/kernels/topk_of_nan_zeros_and_infinities.hlo"),
    ] {
        agrees(text);
    }
}
