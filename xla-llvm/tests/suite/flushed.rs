//! Tests of elementwise operations with flushed subnormals, against the evaluator: every operand and result that is
//! subnormal in its type may be zero instead.

use xla_hlo::ops::{
    Binary, BinaryOp, BitcastConvert, Clamp, Compare, CompareDirection, CompareType, Convert, Op, ReducePrecision,
    Select, Unary, UnaryOp,
};
use xla_hlo::{ElementKind, ElementType, Literal, Scalar};
use xla_llvm::emitter::EmitOptions;
use xla_llvm::target::Target;

use crate::elements::{
    Run, TYPICAL, Tolerance, agrees, binary_tolerance, check_all, literal, oracle, pairs_of, plain_x86, samples,
    unary_tolerance,
};

/// Returns the least normal number of types whose arithmetic has subnormals of the type; other types are computed in
/// `f32`, in which their subnormals are normal.
fn least_normal(ty: ElementType) -> f64 {
    match ty.real_part() {
        ElementType::F32 | ElementType::BF16 => f64::from(f32::MIN_POSITIVE),
        ElementType::F64 => f64::MIN_POSITIVE,
        _ => 0.0,
    }
}

/// Returns the value, or a zero of its sign if it is subnormal.
fn flushed(ty: ElementType, value: Scalar) -> Scalar {
    let flush = |x: f64| if x.abs() < least_normal(ty) { 0.0_f64.copysign(x) } else { x };
    match value {
        Scalar::Float(x) => Scalar::Float(flush(x)),
        Scalar::Complex(re, im) => Scalar::Complex(flush(re), flush(im)),
        other => other,
    }
}

/// Whether a result of an operation on `operands` operands agrees with the evaluator's. A result that rounds to the
/// least normal number may have been subnormal before.
fn may_be(ty: ElementType, got: Scalar, want: Scalar, (tolerance, operands): (Tolerance, usize)) -> bool {
    let margin = least_normal(ty) * (1.0 + if ty == ElementType::BF16 { 2f64.powi(-7) } else { 1e-6 });
    match (got, want) {
        (Scalar::Float(a), Scalar::Float(b)) if b.abs() <= margin && a.abs() < least_normal(ty) => {
            a == 0.0 || a == b || b == 0.0
        }
        // The parts of a product are sums of numbers that may have been flushed.
        (Scalar::Complex(a, c), Scalar::Complex(b, d))
            if (a - b).abs().max((c - d).abs()) <= margin * operands as f64 =>
        {
            true
        }
        _ => agrees(ty, got, want, tolerance),
    }
}

/// Returns edge values around the least normal number, and ordinary numbers.
fn values(ty: ElementType, count: usize) -> Vec<Scalar> {
    let factors = [1.0, 1.0625, 1.5, 1.99, 2.0, 3.0, 4.7, 17.0, 1000.3, 1e5, 1e8, 1e20, 0.999, 0.5, 0.1, 1e-3];
    let least = least_normal(ty);
    let near = factors.iter().flat_map(|f| [f * least, -f * least]).filter(|&x| x != 0.0);
    let near: Vec<Scalar> = match ty.kind() {
        ElementKind::Float => near.map(Scalar::Float).collect(),
        ElementKind::Complex => near.flat_map(|x| [0.0, 1.5, 3.0].map(|part| Scalar::Complex(x, part * x))).collect(),
        _ => Vec::new(),
    };
    near.into_iter().map(|value| value.rounded(ty)).chain(samples(ty, count)).collect()
}

/// Runs an operation with flushed subnormals. Each element must equal the evaluator's result for the operands, or for
/// some of them flushed. A complex function, whose formula may fail near the least normal number, may return its result
/// without flushing.
fn check(op: &Op, result: Option<ElementType>, operands: &[Literal], tolerance: Tolerance) -> Result<(), String> {
    let types: Vec<ElementType> = operands.iter().map(|x| x.array_shape().element_type()).collect();
    let all = || types.iter().chain(&result);
    // Kernels without floats and kernels of `f8e8m0fnu` are not run in that mode.
    if all().all(|ty| least_normal(*ty) == 0.0 && !ty.is_float()) || all().any(|&ty| ty == ElementType::F8E8M0FNU) {
        return Ok(());
    }
    let variant = |which: usize| {
        let operand = |(i, x): (usize, &Literal)| match which >> i & 1 {
            0 => x.clone(),
            _ => Literal::from_fn(x.array_shape(), |at| flushed(types[i], x.get(at))).unwrap(),
        };
        let operands: Vec<Literal> = operands.iter().enumerate().map(operand).collect();
        oracle(op, result, &operands)
    };
    let Ok(wants) = (0..1 << operands.len()).map(variant).collect::<xla_hlo::Result<Vec<Literal>>>() else {
        // The operation is not defined for the type.
        return Ok(());
    };
    let output = wants[0].array_shape().element_type();
    let plain = plain_x86().filter(|_| all().all(|ty| TYPICAL.contains(ty)));
    for (target, width) in [(Some(Target::host().unwrap()), 16), (plain, 4)] {
        let Some(target) = target else { continue };
        let run = |flush_denormals| {
            let options = EmitOptions { flush_denormals, ..EmitOptions::default() };
            let got = Run { target: &target, width, options }.run(op, operands, output);
            got.map_err(|reason| format!("{} of {types:?} to {output}: {reason}", op.opcode()))
        };
        let got = run(true)?;
        let otherwise = if output.is_complex() { run(false)? } else { Vec::new() };
        for (i, &value) in got.iter().enumerate() {
            let expected = wants.iter().map(|want| want.get(i)).chain(otherwise.get(i).copied());
            if !expected.clone().any(|want| may_be(output, value, want, (tolerance, operands.len()))) {
                let x: Vec<Scalar> = operands.iter().map(|x| x.get(i)).collect();
                let expected: Vec<Scalar> = expected.collect();
                let what = format!("{} of {types:?} to {output}, width {width}", op.opcode());
                return Err(format!("{what}: {x:?} gives {value:?}, expected {expected:?}"));
            }
        }
    }
    Ok(())
}

/// Returns each operation of a list with each type.
fn with_types<T: Copy>(ops: &[T]) -> Vec<(T, ElementType)> {
    ops.iter().flat_map(|&op| ElementType::ALL.iter().map(move |&ty| (op, ty))).collect()
}

#[test]
fn flushed_unary() {
    check_all(&with_types(UnaryOp::ALL), |&(op, ty)| {
        check(&Unary::from(op).into(), None, &[literal(ty, &values(ty, 600))], unary_tolerance(op, ty))
    });
}

#[test]
fn flushed_binary() {
    check_all(&with_types(BinaryOp::ALL), |&(op, ty)| {
        // Phases of large powers are practically random, and the formula of the angle squares its operands.
        let tame = ty.is_complex() && matches!(op, BinaryOp::Power | BinaryOp::Atan2);
        let [x, y] = pairs_of(&if tame { samples(ty, 60) } else { values(ty, 60) });
        check(&Binary { op }.into(), None, &[literal(ty, &x), literal(ty, &y)], binary_tolerance(op, ty))
    });
}

/// Subnormal exponents are not 0: NaN stays NaN, a negative base has no root, and 0 to a tiny power is 0.
#[test]
fn power_takes_a_subnormal_for_a_zero() {
    check_all(&[ElementType::F32, ElementType::F64, ElementType::BF16], |&ty| {
        let least = least_normal(ty);
        let near = [1.0, 0.5, 0.25, 2f64.powi(-7)].into_iter().flat_map(|f| [f * least, -f * least]);
        let special = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let values: Vec<Scalar> = near.chain(special).map(|x| Scalar::Float(x).rounded(ty)).collect();
        let [x, y] = pairs_of(&values).map(|list| literal(ty, &list));
        let op = Binary { op: BinaryOp::Power }.into();
        let (target, options) =
            (Target::host().unwrap(), EmitOptions { flush_denormals: true, ..EmitOptions::default() });
        let got = Run { target: &target, width: 16, options }.run(&op, &[x.clone(), y.clone()], ty)?;
        let want = oracle(&op, None, &[x.clone(), y.clone()]).unwrap();
        let tolerance = (binary_tolerance(BinaryOp::Power, ty), 2);
        match (0..got.len()).find(|&i| !may_be(ty, got[i], want.get(i), tolerance)) {
            Some(i) => Err(format!("{ty}: {:?} to {:?} gives {:?}, not {:?}", x.get(i), y.get(i), got[i], want.get(i))),
            None => Ok(()),
        }
    });
}

#[test]
fn flushed_converts() {
    check_all(&with_types(ElementType::ALL), |&(to, from)| {
        // The ranges of the two types differ.
        let around = |ty| values(ty, 500).into_iter();
        let all: Vec<Scalar> = match (from.is_float(), to.is_float()) {
            (true, true) => around(from).chain(around(to).map(|value| value.rounded(from))).collect(),
            _ => around(from).collect(),
        };
        check(&Convert.into(), Some(to), &[literal(from, &all)], Tolerance::Exact)?;
        let same_width = from.bit_width() == to.bit_width() && !from.is_complex() && !to.is_complex();
        let bits = || check(&BitcastConvert.into(), Some(to), &[literal(from, &all)], Tolerance::Exact);
        if same_width { bits() } else { Ok(()) }
    });
}

#[test]
fn flushed_choices() {
    use CompareDirection::*;
    check_all(ElementType::ALL, |&ty| {
        let [x, y] = pairs_of(&values(ty, 60));
        let (x, y) = (literal(ty, &x), literal(ty, &y));
        for direction in [Eq, Ne, Ge, Gt, Le, Lt] {
            for order in [None, Some(CompareType::TotalOrder)] {
                check(&Compare { direction, order }.into(), None, &[x.clone(), y.clone()], Tolerance::Exact)?;
            }
        }
        let count = x.array_shape().element_count();
        let pred: Vec<Scalar> = (0..count).map(|i| Scalar::Pred(i % 3 == 0)).collect();
        let pred = literal(ElementType::Pred, &pred);
        check(&Select.into(), None, &[pred, x.clone(), y.clone()], Tolerance::Exact)?;
        check(
            &ReducePrecision { exponent_bits: 8, mantissa_bits: 5 }.into(),
            None,
            std::slice::from_ref(&x),
            Tolerance::Exact,
        )?;
        let third: Vec<Scalar> = (0..count).map(|i| x.get((i * 7 + 3) % count)).collect();
        check(&Clamp.into(), None, &[x, literal(ty, &third), y], Tolerance::Exact)
    });
}
