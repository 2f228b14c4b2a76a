"""Writes `sample/`: a few of the programs as artifacts with their HLO, for tests that run without Python."""

import pathlib

import jax

import primitives
import programs

NAMES = """
    abs_c64 add_bf16 atan2_f64 eq_s64 not_pred sign_u8 erf_f32 exp_tolerance_f32 nextafter_f32 reduce_precision_f16
    clamp select_n_of_three convert_float32_int4 bitcast chain_on_transpose broadcast_of_one concatenate
    dynamic_update_slice gather_fill gather_two pad reshape transpose_of_three iota_s32 unstack rev
    reduce_sum_f32 reduce_xor argmax_f32 cummax_s32 top_k_f32 reduce_of_two sort_two_keys softmax_gradient
    scatter_add_drop scatter_apply dot_general_highest dot_general_bf16_bf16_f32_x3 conv_dilated conv_batch_grouped fft
    rfft while_captures while_nested while_batched scan_reverse cond_captures switch cond_in_loop jit
    custom_vjp_gradient named_scope optimization_barrier rng_three_fry
""".split()


def main():
    found = primitives.programs()
    for name in NAMES:
        function, arguments = found[name]
        module = jax.jit(function).lower(*arguments).compiler_ir("stablehlo")
        module = module.operation.get_asm(enable_debug_info=True, large_elements_limit=None)
        artifact = programs.portable(module)
        programs.write(pathlib.Path(__file__).parent / "sample", name, artifact, programs.computation(artifact))


if __name__ == "__main__":
    main()
