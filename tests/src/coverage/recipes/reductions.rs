//! Recipes of contractions, reductions, windows, sorts, random numbers and linear algebra.

use xla_hlo::Opcode::{self, *};

use super::{COMBINER, Check, Recipe, lines, program};

const SORTED: &str =
    "before { x = $t[] parameter(0)\n y = $t[] parameter(1)\n ROOT z = compare(x, y), direction=$before }";
const COMBINER_AND_CHOICE: &str = "combiner { x = $t[] parameter(0)\n y = $t[] parameter(1)\n ROOT z = $add(x, y) }\n\
    choice { x = $t[] parameter(0)\n y = $t[] parameter(1)\n ROOT z = compare(x, y), direction=$before }";
const STEP: &str =
    "step { x = $t[3] parameter(0)\n c = $t[3] parameter(1)\n d = $add(c, x)\n ROOT r = ($t[3], $t[3]) tuple(d, d) }";

/// Positive definite matrix `m`, unknown at compile time, and operations on it and `p`.
macro_rules! matrix {
    ($root:literal) => {
        lines(concat!(
            "p = $t[3,3] parameter(0)\n n = $t[3,3] parameter(1)\n i = s32[3,3] iota(), iota_dimension=0\n \
            j = s32[3,3] iota(), iota_dimension=1\n d = compare(i, j), direction=EQ\n e = f32[] constant(40)\n \
            f = $t[] convert(e)\n b = $t[3,3] broadcast(f), dimensions={}\n u = f32[] constant(1)\n v = $t[] convert(u)\n \
            w = $t[3,3] broadcast(v), dimensions={}\n a = select(d, b, w)\n z = subtract(n, n)\n m = add(a, z)\n ROOT r = ",
            $root
        ))
    };
}

pub(super) const RECIPES: &[(&[Opcode], Recipe)] = &[
    (
        &[Dot],
        lines(
            "x = $t[3,8] parameter(0)\n y = $t[8,5] parameter(1)\n \
            ROOT r = $t[3,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ),
    ),
    (
        &[RaggedDot],
        lines(
            "x = $t[5,2] parameter(0)\n w = $t[3,2,4] parameter(1)\n g = s32[3] constant({2, 1, 2})\n \
            ROOT r = $t[5,4] ragged-dot(x, w, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
            lhs_ragged_dims={0}, rhs_group_dims={0}",
        ),
    ),
    (
        &[ScaledDot],
        lines(
            "x = $t[2,4] parameter(0)\n y = $t[4,3] parameter(1)\n s = f8e8m0fnu[2,2] parameter(2)\n \
            u = f8e8m0fnu[2,3] parameter(3)\n \
            ROOT r = f32[2,3] scaled-dot(x, y, s, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ),
    ),
    (
        &[Reduce],
        program(
            COMBINER,
            "x = $t[3,9] parameter(0)\n i = $t[] parameter(1)\n ROOT r = $t[3] reduce(x, i), dimensions={1}, to_apply=combiner",
        ),
    ),
    (
        &[Scan],
        program(
            STEP,
            "x = $t[4,3] parameter(0)\n c = $t[3] parameter(1)\n \
            ROOT r = ($t[4,3], $t[3]) scan(x, c), dimensions={0}, num_carries=1, to_apply=step",
        ),
    ),
    (
        &[ReduceWindow],
        program(
            COMBINER,
            "x = $t[3,9] parameter(0)\n i = $t[] parameter(1)\n \
            ROOT r = $t[3,7] reduce-window(x, i), window={size=1x3}, to_apply=combiner",
        ),
    ),
    (
        &[SelectAndScatter],
        program(
            COMBINER_AND_CHOICE,
            "x = $t[3,8] parameter(0)\n s = $t[3,4] parameter(1)\n i = $t[] parameter(2)\n \
            ROOT r = $t[3,8] select-and-scatter(x, s, i), window={size=1x2 stride=1x2}, select=choice, scatter=combiner",
        ),
    ),
    (
        &[RngBitGenerator],
        lines("s = u64[3] parameter(0)\n ROOT r = (u64[3], $t[7]) rng-bit-generator(s), algorithm=rng_philox"),
    ),
    (
        &[Rng],
        Recipe::Program {
            computations: "",
            entry: "a = $t[] parameter(0)\n b = $t[] parameter(1)\n ROOT r = $t[7] rng(a, b), distribution=rng_uniform",
            check: Check::Shapes,
        },
    ),
    (
        &[RngGetAndUpdateState],
        Recipe::Program {
            computations: "",
            entry: "x = $t[2] parameter(0)\n s = u64[2] rng-get-and-update-state(), delta=1\n c = $t[2] convert(s)\n ROOT r = $add(x, c)",
            check: Check::Shapes,
        },
    ),
    (
        &[StochasticConvert],
        lines("x = $t[5] parameter(0)\n b = $bits[5] parameter(1)\n ROOT r = s8[5] stochastic-convert(x, b)"),
    ),
    (
        &[BatchNormTraining],
        lines(
            "x = $t[3,2] parameter(0)\n s = $t[2] parameter(1)\n o = $t[2] parameter(2)\n \
            ROOT r = ($t[3,2], $t[2], $t[2]) batch-norm-training(x, s, o), epsilon=0.5, feature_index=1",
        ),
    ),
    (
        &[BatchNormInference],
        lines(
            "x = $t[3,2] parameter(0)\n s = $t[2] parameter(1)\n o = $t[2] parameter(2)\n m = $t[2] parameter(3)\n \
            v = $t[2] parameter(4)\n w = multiply(v, v)\n \
            ROOT r = $t[3,2] batch-norm-inference(x, s, o, m, w), epsilon=0.5, feature_index=1",
        ),
    ),
    (
        &[BatchNormGrad],
        lines(
            "x = $t[3,2] parameter(0)\n s = $t[2] parameter(1)\n m = $t[2] parameter(2)\n v = $t[2] parameter(3)\n \
            w = multiply(v, v)\n g = $t[3,2] parameter(4)\n \
            ROOT r = ($t[3,2], $t[2], $t[2]) batch-norm-grad(x, s, m, w, g), epsilon=0.5, feature_index=1",
        ),
    ),
    (
        &[Scatter],
        program(
            COMBINER,
            "x = $t[5,3] parameter(0)\n i = s32[4] parameter(1)\n u = $t[4,3] parameter(2)\n \
            ROOT r = $t[5,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, \
            scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=combiner",
        ),
    ),
    (&[Sort], program(SORTED, "x = $t[3,9] parameter(0)\n ROOT r = $t[3,9] sort(x), dimensions={1}, to_apply=before")),
    (&[TopK], lines("x = $t[3,9] parameter(0)\n ROOT r = ($t[3,4], s32[3,4]) topk(x), k=4, largest=true")),
    (&[Fft], lines("x = $t[3,8] parameter(0)\n ROOT r = fft(x), fft_type=$fft, fft_length={8}")),
    (&[Cholesky], matrix!("cholesky(m), lower=true")),
    (&[TriangularSolve], matrix!("triangular-solve(m, p), left_side=true, lower=true, transpose_a=NO_TRANSPOSE")),
    (
        &[Convolution],
        lines(
            "x = $t[2,6,3] parameter(0)\n w = $t[2,3,4] parameter(1)\n \
            ROOT r = $t[2,5,4] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f",
        ),
    ),
];
