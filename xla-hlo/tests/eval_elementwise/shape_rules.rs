//! Tests of shapes and element types that elementwise operations accept, and of error messages.

use xla_hlo::ops::{
    Binary, BinaryOp, BitcastConvert, Clamp, Compare, CompareDirection, CompareType, Convert, ReducePrecision, Select,
    ShapeContext, Unary, UnaryOp,
};
use xla_hlo::{ArrayShape, Dynamism, ElementType, Module, Op, Shape};

use crate::support::refusal;
use ElementType::*;

fn v(ty: ElementType) -> Shape {
    Shape::array(ty, [3])
}

fn infer(op: impl Into<Op>, operands: &[&Shape], written: Option<&Shape>) -> Option<Shape> {
    let module = Module::new("rules");
    op.into().rules().infer_shape(&ShapeContext::new(&module, operands, written)).ok()
}

/// One element type of each kind.
const SAMPLES: [ElementType; 8] = [Pred, S4, S32, U8, BF16, F32, F8E8M0FNU, C64];

fn defined(op: impl Into<Op>, operands: usize) -> Vec<ElementType> {
    let op = op.into();
    SAMPLES.into_iter().filter(|&ty| infer(op.clone(), &vec![&v(ty); operands], None).is_some()).collect()
}

/// The accepted types are equal to jaxlib 0.10.2's.
#[test]
fn element_types_of_unary_operations() {
    use UnaryOp::*;
    for &op in UnaryOp::ALL {
        let expected: &[ElementType] = match op {
            Not => &[Pred, S4, S32, U8],
            CountLeadingZeros | Popcnt => &[S4, S32, U8],
            Negate => &[S4, S32, U8, BF16, F32, F8E8M0FNU, C64],
            Abs | Sign => &[S4, S32, BF16, F32, F8E8M0FNU, C64],
            Cbrt | Ceil | Erf | Floor | IsFinite | RoundNearestAfz | RoundNearestEven => &[BF16, F32, F8E8M0FNU],
            Acos | Acosh | Asin | Asinh | Atan | Atanh | Cosh | Cosine | Exponential | ExponentialMinusOne | Imag
            | Log | LogPlusOne | Logistic | Real | Rsqrt | Sine | Sinh | Sqrt | Tan | Tanh => {
                &[BF16, F32, F8E8M0FNU, C64]
            }
        };
        assert_eq!(defined(Unary::from(op), 1), expected, "{}", op.opcode());
    }
    assert_eq!(infer(Unary::from(Abs), &[&v(C128)], None), Some(v(F64)));
    assert_eq!(infer(Unary::from(Imag), &[&v(C64)], None), Some(v(F32)));
    assert_eq!(infer(Unary::from(IsFinite), &[&v(F16)], None), Some(v(Pred)));
}

/// The accepted types are equal to jaxlib 0.10.2's, with two exceptions: jaxlib accepts shifts and mulhi for types
/// without a meaning of them, and the remainder of complex numbers, which it cannot compile.
#[test]
fn element_types_of_binary_operations() {
    use BinaryOp::*;
    for &op in BinaryOp::ALL {
        let expected: &[ElementType] = match op {
            Add | Multiply | Maximum | Minimum => &SAMPLES,
            Subtract | Divide | Power => &[S4, S32, U8, BF16, F32, F8E8M0FNU, C64],
            Remainder => &[S4, S32, U8, BF16, F32, F8E8M0FNU],
            And | Or | Xor => &[Pred, S4, S32, U8],
            Mulhi | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical => &[S4, S32, U8],
            Atan2 => &[BF16, F32, F8E8M0FNU, C64],
            Complex => &[F32],
        };
        assert_eq!(defined(Binary { op }, 2), expected, "{}", op.opcode());
    }
    assert_eq!(infer(Binary { op: Complex }, &[&v(F64), &v(F64)], None), Some(v(C128)));
}

#[test]
fn operands_must_be_equal_in_shape() {
    let add = || Binary { op: BinaryOp::Add };
    let message = refusal(add(), &[Shape::array(F32, [2]), Shape::array(F32, [3])], None);
    assert!(
        message.contains("operands of add must have equal dimensions and element type: f32[2] and f32[3]"),
        "{message}"
    );
    let message = refusal(add(), &[v(F32), v(BF16)], None);
    assert!(message.contains("f32[3] and bf16[3]"), "{message}");
    let message = refusal(add(), &[v(F32), Shape::scalar(F32)], None);
    assert!(message.contains("f32[3] and f32[]"), "{message}");
    let message = refusal(Compare::new(CompareDirection::Lt), &[v(F32), v(S32)], None);
    assert!(message.contains("operands of compare must have equal"), "{message}");
    let message = refusal(Unary::from(UnaryOp::Sqrt), &[v(S32)], None);
    assert!(message.contains("operands of sqrt must be float, complex; it is not defined for s32"), "{message}");
    let message = refusal(Unary::from(UnaryOp::Sqrt), &[Shape::Tuple(vec![v(F32)])], None);
    assert!(message.contains("operand 0 must be an array, it is (f32[3]"), "{message}");
}

#[test]
fn comparisons_have_the_order_of_their_type() {
    let ok = |direction, order, ty| infer(Compare { direction, order: Some(order) }, &[&v(ty), &v(ty)], None).is_some();
    use CompareDirection::{Eq, Ge, Lt, Ne};
    assert!(ok(Lt, CompareType::TotalOrder, F8E5M2) && ok(Lt, CompareType::Float, F32));
    assert!(
        ok(Ge, CompareType::Signed, S4) && ok(Ge, CompareType::Unsigned, Pred) && ok(Ge, CompareType::Unsigned, U64)
    );
    assert!(!ok(Lt, CompareType::Signed, F32) && !ok(Lt, CompareType::Float, S32));
    assert!(!ok(Lt, CompareType::Unsigned, S32) && !ok(Lt, CompareType::Signed, U32));
    assert!(ok(Eq, CompareType::Float, C64) && ok(Ne, CompareType::Float, C128));
    assert!(!ok(Lt, CompareType::Float, C64) && !ok(Eq, CompareType::TotalOrder, C64));
}

#[test]
fn select_and_clamp() {
    let (scalar, other) = (Shape::scalar(Pred), Shape::array(Pred, [1]));
    assert_eq!(infer(Select, &[&v(Pred), &v(F32), &v(F32)], None), Some(v(F32)));
    assert_eq!(infer(Select, &[&scalar, &v(F32), &v(F32)], None), Some(v(F32)));
    assert_eq!(infer(Select, &[&other, &v(F32), &v(F32)], None), None);
    assert_eq!(infer(Select, &[&v(S32), &v(F32), &v(F32)], None), None);
    assert_eq!(infer(Select, &[&v(Pred), &v(F32), &v(BF16)], None), None);
    let tuple = Shape::Tuple(vec![v(F32)]);
    assert_eq!(infer(Select, &[&scalar, &tuple, &tuple], None), None);
    let bound = Shape::scalar(F32);
    assert_eq!(infer(Clamp, &[&bound, &v(F32), &v(F32)], None), Some(v(F32)));
    assert_eq!(infer(Clamp, &[&bound, &bound, &v(F32)], None), None);
    assert_eq!(infer(Clamp, &[&Shape::array(F32, [1]), &v(F32), &bound], None), None);
    let message = refusal(Clamp, &[Shape::scalar(F64), v(F32), bound], None);
    assert!(message.contains("the least value of clamp must have the operand's element type"), "{message}");
}

#[test]
fn conversions_need_the_result_written() {
    assert_eq!(infer(Convert, &[&v(F32)], Some(&v(S4))), Some(v(S4)));
    assert_eq!(infer(Convert, &[&v(F32)], Some(&v(C64))), Some(v(C64)));
    assert_eq!(infer(Convert, &[&v(C64)], Some(&v(C128))), Some(v(C128)));
    assert_eq!(infer(Convert, &[&v(C64)], Some(&v(F32))), None);
    assert_eq!(infer(Convert, &[&v(F32)], Some(&Shape::array(F64, [4]))), None);
    assert_eq!(infer(Convert, &[&v(F32)], None), None);
}

#[test]
fn bit_casts_add_or_remove_a_minor_dimension() {
    let cast = |from: Shape, to: Shape| infer(BitcastConvert, &[&from], Some(&to)).is_some();
    assert!(cast(v(F32), v(U32)) && cast(v(S4), v(U4)) && cast(v(C64), v(C64)));
    assert!(cast(v(F32), Shape::array(S8, [3, 4])) && cast(Shape::array(S8, [3, 4]), v(F32)));
    assert!(cast(v(U8), Shape::array(S4, [3, 2])) && cast(Shape::array(F32, [3, 2]), v(F64)));
    assert!(!cast(v(F32), Shape::array(S8, [12])) && !cast(v(F32), v(F64)) && !cast(v(F32), Shape::array(S8, [4, 3])));
    assert!(
        !cast(v(C64), v(U64)) && !cast(Shape::array(F32, [3, 2]), v(C64)) && !cast(v(C128), Shape::array(C64, [3, 2]))
    );
    assert!(!cast(Shape::scalar(F32), Shape::scalar(F64)));
    assert!(!cast(Shape::array(F6E2M3FN, [4]), Shape::array(U8, [3])), "6 bits do not divide 8");
}

#[test]
fn reduced_precision_is_of_floats_and_keeps_an_exponent() {
    let reduce = |ty, exponent_bits| infer(ReducePrecision { exponent_bits, mantissa_bits: 3 }, &[&v(ty)], None);
    assert_eq!(reduce(F16, 5), Some(v(F16)));
    assert_eq!(reduce(F16, 0), None);
    assert_eq!(reduce(S32, 5), None);
    assert_eq!(reduce(C64, 5), None);
}

#[test]
fn dynamic_dimensions_stay_dynamic() {
    let dynamic: Shape = ArrayShape::new(F32, [3]).with_dynamism(vec![Dynamism::Bounded]).into();
    let sum = infer(Binary { op: BinaryOp::Add }, &[&v(F32), &dynamic], None).unwrap();
    assert_eq!(sum.as_array().unwrap().dynamism(0), Dynamism::Bounded);
}
