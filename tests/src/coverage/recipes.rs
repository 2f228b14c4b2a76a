//! For each opcode a tiny program that uses it on any element type.
//!
//! In a recipe `$t` stands for the element type, `$op` for the opcode, `$part` for the type of a complex number's parts, `$bits` for the
//! unsigned integers of the same width (or the type itself, where there are none or it is complex), `$add` for a sum (of truth values: or), and `$before` for the comparison
//! that the type has (`LT`, of complex numbers `EQ`). A recipe that breaks a shape rule says that the operation does not have the type.

use xla_hlo::{ElementKind, ElementType, Opcode};

/// How an opcode is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// Lines of the entry, and the computations that it calls.
    Program {
        /// Computations in front of the entry.
        computations: &'static str,
        /// The lines of the entry.
        entry: &'static str,
        /// How far results may be from the evaluator's.
        check: Check,
    },
    /// Not by itself: what is there instead.
    NotAlone(&'static str),
}

/// How a result is compared with the evaluator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Within a few roundings.
    Values,
    /// Only the shapes: the values are the platform's own.
    Shapes,
}

const FOLD: &str = "fold { x = $t[] parameter(0)\n y = $t[] parameter(1)\n ROOT z = $add(x, y) }";
const SORTED: &str =
    "before { x = $t[] parameter(0)\n y = $t[] parameter(1)\n ROOT z = compare(x, y), direction=$before }";
const TWO_FUNCTIONS: &str = "first { x = $t[4] parameter(0)\n ROOT y = $add(x, x) }\n\
    second { x = $t[4] parameter(0)\n ROOT y = $t[4] reverse(x), dimensions={0} }";
const FOLD_AND_CHOICE: &str = "fold { x = $t[] parameter(0)\n y = $t[] parameter(1)\n ROOT z = $add(x, y) }\n\
    choice { x = $t[] parameter(0)\n y = $t[] parameter(1)\n ROOT z = compare(x, y), direction=$before }";
const LOOP: &str = "more { s = (s32[], $t[4]) parameter(0)\n i = get-tuple-element(s), index=0\n n = s32[] constant(3)\n \
    ROOT c = compare(i, n), direction=LT }\n\
    step { s = (s32[], $t[4]) parameter(0)\n i = get-tuple-element(s), index=0\n one = s32[] constant(1)\n \
    x = get-tuple-element(s), index=1\n j = add(i, one)\n y = $add(x, x)\n ROOT r = tuple(j, y) }";
const STEP: &str =
    "step { x = $t[3] parameter(0)\n c = $t[3] parameter(1)\n d = $add(c, x)\n ROOT r = ($t[3], $t[3]) tuple(d, d) }";

const fn program(computations: &'static str, entry: &'static str) -> Recipe {
    Recipe::Program { computations, entry, check: Check::Values }
}

const fn lines(entry: &'static str) -> Recipe {
    program("", entry)
}

const UNARY: Recipe = lines("x = $t[3,5] parameter(0)\n ROOT r = $op(x)");
const BINARY: Recipe = lines("x = $t[3,5] parameter(0)\n y = $t[3,5] parameter(1)\n ROOT r = $op(x, y)");
/// A positive definite matrix `m`, which no pass knows when compiling, and what is done with it and with `p`.
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

/// How an opcode is tried.
pub fn recipe(opcode: Opcode) -> Recipe {
    use Opcode::*;
    match opcode {
        Abs | Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil | Cosh | Cosine | CountLeadingZeros | Erf
        | Exponential | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne | Logistic | Negate | Not
        | Popcnt | Real | RoundNearestAfz | RoundNearestEven | Rsqrt | Sign | Sine | Sinh | Sqrt | Tan | Tanh
        | OptBarrier => UNARY,
        Add | And | Atan2 | Complex | Divide | Maximum | Minimum | Mulhi | Multiply | Or | Power | Remainder
        | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Subtract | Xor => BINARY,
        Compare => {
            lines("x = $t[3,5] parameter(0)\n y = $t[3,5] parameter(1)\n ROOT r = compare(x, y), direction=$before")
        }
        Select => lines(
            "p = pred[3,5] parameter(0)\n x = $t[3,5] parameter(1)\n y = $t[3,5] parameter(2)\n ROOT r = select(p, x, y)",
        ),
        Clamp => lines(
            "l = $t[3,5] parameter(0)\n x = $t[3,5] parameter(1)\n h = $t[3,5] parameter(2)\n ROOT r = clamp(l, x, h)",
        ),
        Convert => lines(
            "x = $t[3,5] parameter(0)\n f = f32[3,5] parameter(1)\n i = s32[3,5] parameter(2)\n a = f32[3,5] convert(x)\n \
            b = $t[3,5] convert(f)\n c = s32[3,5] convert(x)\n d = $t[3,5] convert(i)\n ROOT r = tuple(a, b, c, d)",
        ),
        BitcastConvert => lines("x = $t[3,5] parameter(0)\n ROOT r = $bits[3,5] bitcast-convert(x)"),
        ReducePrecision => {
            lines("x = $t[3,5] parameter(0)\n ROOT r = reduce-precision(x), exponent_bits=4, mantissa_bits=3")
        }
        Broadcast => lines("x = $t[3,5] parameter(0)\n ROOT r = $t[3,2,5] broadcast(x), dimensions={0,2}"),
        Reshape => lines("x = $t[3,10] parameter(0)\n ROOT r = $t[5,6] reshape(x)"),
        Bitcast => lines("x = $t[3,10] parameter(0)\n ROOT r = $t[5,6] bitcast(x)"),
        Transpose => lines("x = $t[3,5,2] parameter(0)\n ROOT r = $t[2,3,5] transpose(x), dimensions={2,0,1}"),
        Slice => lines("x = $t[3,9] parameter(0)\n ROOT r = $t[2,4] slice(x), slice={[1:3], [1:9:2]}"),
        Pad => {
            lines("x = $t[3,5] parameter(0)\n v = $t[] parameter(1)\n ROOT r = $t[5,8] pad(x, v), padding=1_1x-1_0_1")
        }
        Concatenate => lines(
            "x = $t[3,5] parameter(0)\n y = $t[3,2] parameter(1)\n ROOT r = $t[3,7] concatenate(x, y), dimensions={1}",
        ),
        Reverse => lines("x = $t[3,5] parameter(0)\n ROOT r = $t[3,5] reverse(x), dimensions={1}"),
        Iota => lines("x = $t[3,5] parameter(0)\n i = $t[3,5] iota(), iota_dimension=1\n ROOT r = $add(x, i)"),
        DynamicSlice => lines(
            "x = $t[3,9] parameter(0)\n i = s32[] parameter(1)\n j = s32[] parameter(2)\n \
            ROOT r = $t[2,4] dynamic-slice(x, i, j), dynamic_slice_sizes={2,4}",
        ),
        DynamicUpdateSlice => lines(
            "x = $t[3,9] parameter(0)\n u = $t[2,4] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n \
            ROOT r = $t[3,9] dynamic-update-slice(x, u, i, j)",
        ),
        Copy => lines("x = $t[3,5] parameter(0)\n ROOT r = $t[3,5]{0,1} copy(x)"),
        Dot => lines(
            "x = $t[3,8] parameter(0)\n y = $t[8,5] parameter(1)\n \
            ROOT r = $t[3,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ),
        RaggedDot => lines(
            "x = $t[5,2] parameter(0)\n w = $t[3,2,4] parameter(1)\n g = s32[3] constant({2, 1, 2})\n \
            ROOT r = $t[5,4] ragged-dot(x, w, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
            lhs_ragged_dims={0}, rhs_group_dims={0}",
        ),
        ScaledDot => lines(
            "x = $t[2,4] parameter(0)\n y = $t[4,3] parameter(1)\n s = f8e8m0fnu[2,2] parameter(2)\n \
            u = f8e8m0fnu[2,3] parameter(3)\n \
            ROOT r = f32[2,3] scaled-dot(x, y, s, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ),
        Reduce => program(
            FOLD,
            "x = $t[3,9] parameter(0)\n i = $t[] parameter(1)\n ROOT r = $t[3] reduce(x, i), dimensions={1}, to_apply=fold",
        ),
        Scan => program(
            STEP,
            "x = $t[4,3] parameter(0)\n c = $t[3] parameter(1)\n \
            ROOT r = ($t[4,3], $t[3]) scan(x, c), dimensions={0}, num_carries=1, to_apply=step",
        ),
        ReduceWindow => program(
            FOLD,
            "x = $t[3,9] parameter(0)\n i = $t[] parameter(1)\n \
            ROOT r = $t[3,7] reduce-window(x, i), window={size=1x3}, to_apply=fold",
        ),
        SelectAndScatter => program(
            FOLD_AND_CHOICE,
            "x = $t[3,8] parameter(0)\n s = $t[3,4] parameter(1)\n i = $t[] parameter(2)\n \
            ROOT r = $t[3,8] select-and-scatter(x, s, i), window={size=1x2 stride=1x2}, select=choice, scatter=fold",
        ),
        While => program(
            LOOP,
            "x = $t[4] parameter(0)\n z = s32[] parameter(1)\n s = tuple(z, x)\n \
            w = (s32[], $t[4]) while(s), condition=more, body=step\n ROOT r = get-tuple-element(w), index=1",
        ),
        Conditional => program(
            TWO_FUNCTIONS,
            "p = pred[] parameter(0)\n x = $t[4] parameter(1)\n \
            ROOT r = $t[4] conditional(p, x, x), true_computation=first, false_computation=second",
        ),
        Call => program(TWO_FUNCTIONS, "x = $t[4] parameter(0)\n ROOT r = $t[4] call(x), to_apply=first"),
        Map => program(
            FOLD,
            "x = $t[3,5] parameter(0)\n y = $t[3,5] parameter(1)\n \
            ROOT r = $t[3,5] map(x, y), dimensions={0,1}, to_apply=fold",
        ),
        Fusion => program(TWO_FUNCTIONS, "x = $t[4] parameter(0)\n ROOT r = $t[4] fusion(x), kind=kLoop, calls=first"),
        RngBitGenerator => {
            lines("s = u64[3] parameter(0)\n ROOT r = (u64[3], $t[7]) rng-bit-generator(s), algorithm=rng_philox")
        }
        Rng => Recipe::Program {
            computations: "",
            entry: "a = $t[] parameter(0)\n b = $t[] parameter(1)\n ROOT r = $t[7] rng(a, b), distribution=rng_uniform",
            check: Check::Shapes,
        },
        RngGetAndUpdateState => Recipe::Program {
            computations: "",
            entry: "x = $t[2] parameter(0)\n s = u64[2] rng-get-and-update-state(), delta=1\n c = $t[2] convert(s)\n ROOT r = $add(x, c)",
            check: Check::Shapes,
        },
        StochasticConvert => {
            lines("x = $t[5] parameter(0)\n b = $bits[5] parameter(1)\n ROOT r = s8[5] stochastic-convert(x, b)")
        }
        BatchNormTraining => lines(
            "x = $t[3,2] parameter(0)\n s = $t[2] parameter(1)\n o = $t[2] parameter(2)\n \
            ROOT r = ($t[3,2], $t[2], $t[2]) batch-norm-training(x, s, o), epsilon=0.5, feature_index=1",
        ),
        BatchNormInference => lines(
            "x = $t[3,2] parameter(0)\n s = $t[2] parameter(1)\n o = $t[2] parameter(2)\n m = $t[2] parameter(3)\n \
            v = $t[2] parameter(4)\n w = multiply(v, v)\n \
            ROOT r = $t[3,2] batch-norm-inference(x, s, o, m, w), epsilon=0.5, feature_index=1",
        ),
        BatchNormGrad => lines(
            "x = $t[3,2] parameter(0)\n s = $t[2] parameter(1)\n m = $t[2] parameter(2)\n v = $t[2] parameter(3)\n \
            w = multiply(v, v)\n g = $t[3,2] parameter(4)\n \
            ROOT r = ($t[3,2], $t[2], $t[2]) batch-norm-grad(x, s, m, w, g), epsilon=0.5, feature_index=1",
        ),
        Gather => lines(
            "x = $t[5,3] parameter(0)\n i = s32[4] parameter(1)\n ROOT r = $t[4,3] gather(x, i), offset_dims={1}, \
            collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
        ),
        Scatter => program(
            FOLD,
            "x = $t[5,3] parameter(0)\n i = s32[4] parameter(1)\n u = $t[4,3] parameter(2)\n \
            ROOT r = $t[5,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, \
            scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=fold",
        ),
        Sort => program(SORTED, "x = $t[3,9] parameter(0)\n ROOT r = $t[3,9] sort(x), dimensions={1}, to_apply=before"),
        TopK => lines("x = $t[3,9] parameter(0)\n ROOT r = ($t[3,4], s32[3,4]) topk(x), k=4, largest=true"),
        Fft => lines("x = $t[3,8] parameter(0)\n ROOT r = fft(x), fft_type=$fft, fft_length={8}"),
        Cholesky => matrix!("cholesky(m), lower=true"),
        TriangularSolve => matrix!("triangular-solve(m, p), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"),
        Convolution => lines(
            "x = $t[2,6,3] parameter(0)\n w = $t[2,3,4] parameter(1)\n \
            ROOT r = $t[2,5,4] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f",
        ),
        AfterAll => lines("x = $t[3] parameter(0)\n t = token[] after-all()\n ROOT r = add-dependency(x, t)"),
        AddDependency => lines("x = $t[3] parameter(0)\n t = token[] after-all()\n ROOT r = add-dependency(x, t)"),
        GetDimensionSize => lines("x = $t[3,5] parameter(0)\n ROOT r = s32[] get-dimension-size(x), dimensions={1}"),
        SetDimensionSize => lines(
            "x = $t[3] parameter(0)\n n = s32[] constant(2)\n s = $t[<=3] set-dimension-size(x, n), dimensions={0}\n \
            ROOT r = s32[] get-dimension-size(s), dimensions={0}",
        ),
        DynamicReshape => Recipe::NotAlone("needs the sizes of a model's own dimensions"),
        Parameter | Constant | Tuple | GetTupleElement => Recipe::NotAlone("is in every other program"),
        Domain | Shuffle => Recipe::NotAlone("is for partitioning, and passes take it out"),
        CustomCall => Recipe::NotAlone("calls what the program's user registers"),
        Infeed | Outfeed | Send | SendDone | Recv | RecvDone => Recipe::NotAlone("needs somebody at the other end"),
        AsyncStart | AsyncUpdate | AsyncDone | CopyStart | CopyDone => {
            Recipe::NotAlone("is a part of another operation")
        }
        AllReduce => {
            program(FOLD, "x = $t[4] parameter(0)\n ROOT r = $t[4] all-reduce(x), replica_groups={}, to_apply=fold")
        }
        AllGather => lines("x = $t[4] parameter(0)\n ROOT r = $t[4] all-gather(x), replica_groups={}, dimensions={0}"),
        AllToAll => {
            lines("x = $t[4] parameter(0)\n ROOT r = $t[4] all-to-all(x), replica_groups={{0}}, dimensions={0}")
        }
        CollectivePermute => {
            lines("x = $t[4] parameter(0)\n ROOT r = $t[4] collective-permute(x), source_target_pairs={{0,0}}")
        }
        CollectiveBroadcast => {
            lines("x = $t[4] parameter(0)\n ROOT r = $t[4] collective-broadcast(x), replica_groups={{0}}")
        }
        ReduceScatter => program(
            FOLD,
            "x = $t[4] parameter(0)\n ROOT r = $t[4] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=fold",
        ),
        AllGatherStart
        | AllGatherDone
        | AllReduceStart
        | AllReduceDone
        | CollectivePermuteStart
        | CollectivePermuteDone
        | CollectiveReduce
        | RaggedAllToAll => Recipe::NotAlone("is for several devices"),
        PartitionId | ReplicaId => {
            lines("x = u32[] $op()\n y = $t[] parameter(0)\n z = $t[] convert(x)\n ROOT r = $add(y, z)")
        }
    }
}

/// The program of a recipe for an element type.
pub fn text(opcode: Opcode, ty: ElementType, computations: &str, entry: &str) -> String {
    let same_width =
        |t: &&ElementType| t.kind() == ElementKind::Unsigned && t.bit_width() == ty.bit_width() && !ty.is_complex();
    let bits = ElementType::ALL.iter().find(same_width);
    let words = [
        ("$part", ty.real_part().name()),
        ("$bits", bits.unwrap_or(&ty).name()),
        ("$before", if ty.is_complex() { "EQ" } else { "LT" }),
        ("$add", if ty == ElementType::Pred { "or" } else { "add" }),
        ("$fft", if ty.is_complex() { "FFT" } else { "RFFT" }),
        ("$op", opcode.name()),
        ("$t", ty.name()),
    ];
    let text = format!("HloModule coverage\n{computations}\nENTRY main {{\n {entry}\n}}\n");
    words.into_iter().fold(text, |text, (word, with)| text.replace(word, with))
}
