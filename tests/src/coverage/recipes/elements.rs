//! Recipes of structural and elementwise operations, data movement and dynamic sizes.

use xla_hlo::Opcode::{self, *};

use super::{Recipe, lines};

const UNARY: Recipe = lines("x = $t[3,5] parameter(0)\n ROOT r = $op(x)");
const BINARY: Recipe = lines("x = $t[3,5] parameter(0)\n y = $t[3,5] parameter(1)\n ROOT r = $op(x, y)");

pub(super) const RECIPES: &[(&[Opcode], Recipe)] = &[
    (&[Parameter], lines("ROOT x = $t[3] parameter(0)")),
    (&[Constant], lines("x = $t[2] parameter(0)\n c = $t[2] constant({$one, $one})\n ROOT r = $add(x, c)")),
    (
        &[Tuple, GetTupleElement],
        lines(
            "x = $t[3] parameter(0)\n y = $t[3] parameter(1)\n s = tuple(x, y)\n ROOT r = get-tuple-element(s), index=1",
        ),
    ),
    (
        &[
            Abs,
            Acos,
            Acosh,
            Asin,
            Asinh,
            Atan,
            Atanh,
            Cbrt,
            Ceil,
            Cosh,
            Cosine,
            CountLeadingZeros,
            Erf,
            Exponential,
            ExponentialMinusOne,
            Floor,
            Imag,
            IsFinite,
            Log,
            LogPlusOne,
            Logistic,
            Negate,
            Not,
            Popcnt,
            Real,
            RoundNearestAfz,
            RoundNearestEven,
            Rsqrt,
            Sign,
            Sine,
            Sinh,
            Sqrt,
            Tan,
            Tanh,
            OptBarrier,
        ],
        UNARY,
    ),
    (
        &[
            Add,
            And,
            Atan2,
            Complex,
            Divide,
            Maximum,
            Minimum,
            Mulhi,
            Multiply,
            Or,
            Power,
            Remainder,
            ShiftLeft,
            ShiftRightArithmetic,
            ShiftRightLogical,
            Subtract,
            Xor,
        ],
        BINARY,
    ),
    (
        &[Compare],
        lines("x = $t[3,5] parameter(0)\n y = $t[3,5] parameter(1)\n ROOT r = compare(x, y), direction=$before"),
    ),
    (
        &[Select],
        lines(
            "p = pred[3,5] parameter(0)\n x = $t[3,5] parameter(1)\n y = $t[3,5] parameter(2)\n ROOT r = select(p, x, y)",
        ),
    ),
    (
        &[Clamp],
        lines(
            "l = $t[3,5] parameter(0)\n x = $t[3,5] parameter(1)\n h = $t[3,5] parameter(2)\n ROOT r = clamp(l, x, h)",
        ),
    ),
    (
        &[Convert],
        lines(
            "x = $t[3,5] parameter(0)\n f = f32[3,5] parameter(1)\n i = s32[3,5] parameter(2)\n a = f32[3,5] convert(x)\n \
            b = $t[3,5] convert(f)\n c = s32[3,5] convert(x)\n d = $t[3,5] convert(i)\n ROOT r = tuple(a, b, c, d)",
        ),
    ),
    (&[BitcastConvert], lines("x = $t[3,5] parameter(0)\n ROOT r = $bits[3,5] bitcast-convert(x)")),
    (
        &[ReducePrecision],
        lines("x = $t[3,5] parameter(0)\n ROOT r = reduce-precision(x), exponent_bits=4, mantissa_bits=3"),
    ),
    (&[Broadcast], lines("x = $t[3,5] parameter(0)\n ROOT r = $t[3,2,5] broadcast(x), dimensions={0,2}")),
    (&[Reshape], lines("x = $t[3,10] parameter(0)\n ROOT r = $t[5,6] reshape(x)")),
    (&[Bitcast], lines("x = $t[3,10] parameter(0)\n ROOT r = $t[5,6] bitcast(x)")),
    (&[Transpose], lines("x = $t[3,5,2] parameter(0)\n ROOT r = $t[2,3,5] transpose(x), dimensions={2,0,1}")),
    (&[Slice], lines("x = $t[3,9] parameter(0)\n ROOT r = $t[2,4] slice(x), slice={[1:3], [1:9:2]}")),
    (
        &[Pad],
        lines("x = $t[3,5] parameter(0)\n v = $t[] parameter(1)\n ROOT r = $t[5,8] pad(x, v), padding=1_1x-1_0_1"),
    ),
    (
        &[Concatenate],
        lines(
            "x = $t[3,5] parameter(0)\n y = $t[3,2] parameter(1)\n ROOT r = $t[3,7] concatenate(x, y), dimensions={1}",
        ),
    ),
    (&[Reverse], lines("x = $t[3,5] parameter(0)\n ROOT r = $t[3,5] reverse(x), dimensions={1}")),
    (&[Iota], lines("x = $t[3,5] parameter(0)\n i = $t[3,5] iota(), iota_dimension=1\n ROOT r = $add(x, i)")),
    (
        &[DynamicSlice],
        lines(
            "x = $t[3,9] parameter(0)\n i = s32[] parameter(1)\n j = s32[] parameter(2)\n \
            ROOT r = $t[2,4] dynamic-slice(x, i, j), dynamic_slice_sizes={2,4}",
        ),
    ),
    (
        &[DynamicUpdateSlice],
        lines(
            "x = $t[3,9] parameter(0)\n u = $t[2,4] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n \
            ROOT r = $t[3,9] dynamic-update-slice(x, u, i, j)",
        ),
    ),
    (&[Copy], lines("x = $t[3,5] parameter(0)\n ROOT r = $t[3,5]{0,1} copy(x)")),
    (
        &[Gather],
        lines(
            "x = $t[5,3] parameter(0)\n i = s32[4] parameter(1)\n ROOT r = $t[4,3] gather(x, i), offset_dims={1}, \
            collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
        ),
    ),
    (&[GetDimensionSize], lines("x = $t[3,5] parameter(0)\n ROOT r = s32[] get-dimension-size(x), dimensions={1}")),
    (
        &[SetDimensionSize],
        lines(
            "x = $t[3] parameter(0)\n n = s32[] constant(2)\n s = $t[<=3] set-dimension-size(x, n), dimensions={0}\n \
            ROOT r = s32[] get-dimension-size(s), dimensions={0}",
        ),
    ),
    (
        &[DynamicReshape],
        lines(
            "x = $t[3,4] parameter(0)\n n = s32[] constant(2)\n m = s32[] constant(3)\n s = $t[3,<=4] set-dimension-size(x, n), dimensions={1}\n ROOT r = $t[<=4,3] dynamic-reshape(s, n, m)",
        ),
    ),
];
