//! Tests of elementwise operations on every element type, against the evaluator.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::{
    Binary, BinaryOp, BitcastConvert, Clamp, Compare, CompareDirection, CompareType, Convert, Op, ReducePrecision,
    Select, Unary, UnaryOp,
};
use xla_hlo::{ArrayShape, ElementKind, ElementType, Literal, Result, Scalar, Shape, eval};
use xla_llvm::elemental::{self};
use xla_llvm::emitter::EmitOptions;
use xla_llvm::target::Target;

use crate::kernel::{Kernel, Signature};

/// Evaluates an operation on arrays.
pub(crate) fn oracle(op: &Op, result: Option<ElementType>, operands: &[Literal]) -> Result<Literal> {
    let mut module = ModuleBuilder::new("oracle");
    let mut b = module.computation("main");
    let parameters = operands.iter().map(|x| b.parameter(x.shape().clone())).collect::<Result<Vec<_>>>()?;
    let written = result.map(|ty| Shape::array(ty, operands[0].array_shape().dims().to_vec()));
    let root = b.instruction(op.clone(), written, parameters)?;
    let main = b.finish(root);
    let module = module.finish(main)?;
    eval::evaluate(&module, operands.to_vec())
}

pub(crate) fn literal(ty: ElementType, values: &[Scalar]) -> Literal {
    Literal::from_fn(&ArrayShape::new(ty, [values.len()]), |i| values[i]).unwrap()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0.rotate_left(32)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }
}

/// Returns test values of a type: all if they are few, otherwise edge values, ordinary numbers and random patterns.
pub(crate) fn samples(ty: ElementType, count: usize) -> Vec<Scalar> {
    let mut random = Random(ty.bit_width() as u64 + 7);
    let bits = ty.bit_width();
    if bits <= 8 || (bits == 16 && count >= 1 << 16) {
        return (0..1_u64 << bits).map(|pattern| Scalar::from_bits(ty, pattern)).collect();
    }
    let edges = [0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 127, 128, 255, 256];
    let floats = [0.0, 1.0, 0.5, 1.5, 2.5, 3.5, 0.3, 1e-3, 1e3, 65504.0, 2147483648.0, 9.3e18, 1e-40, 3.5e38, 1e300];
    let specials = [f64::INFINITY, f64::NAN, f64::MIN_POSITIVE, 5e-324, 1.17549435e-38, 1e-45];
    let mut values: Vec<Scalar> = match ty.kind() {
        ElementKind::Float => {
            floats.iter().chain(&specials).flat_map(|&x| [Scalar::Float(x), Scalar::Float(-x)]).collect()
        }
        ElementKind::Complex => {
            let parts = [0.0, 0.5, 1.0, 30.0, 1e300, 1e-300, f64::INFINITY, f64::NAN];
            let parts: Vec<f64> = parts.iter().flat_map(|&x: &f64| [x, -x]).collect();
            let every: Vec<_> =
                parts.iter().flat_map(|&re| parts.iter().map(move |&im| Scalar::Complex(re, im))).collect();
            // All values, or evenly spaced ones for half of the count.
            every.iter().copied().step_by((2 * every.len()).div_ceil(count)).collect()
        }
        _ => edges
            .iter()
            .flat_map(|&x: &u64| [x, x.wrapping_neg(), (1 << (bits - 1)) + x, (1_u64 << (bits - 1)).wrapping_sub(x)])
            .map(|x| Scalar::from_bits(ty, x))
            .collect(),
    };
    while values.len() < count {
        let everyday = (random.unit() - 0.5) * 2f64.powi((random.next() % 12) as i32 - 4);
        let other = (random.unit() - 0.5) * 2f64.powi((random.next() % 6) as i32 - 2);
        values.push(match (ty.kind(), values.len() % 2) {
            (ElementKind::Complex, _) => Scalar::Complex(everyday, other),
            (ElementKind::Float, 0) => Scalar::Float(everyday),
            _ => Scalar::from_bits(ty, random.next() >> (64 - bits)),
        });
    }
    values.truncate(count);
    values.into_iter().map(|value| value.rounded(ty)).collect()
}

/// Returns all pairs of samples.
fn pairs(ty: ElementType) -> [Vec<Scalar>; 2] {
    pairs_of(&samples(ty, 120))
}

/// Returns all pairs of values.
pub(crate) fn pairs_of(values: &[Scalar]) -> [Vec<Scalar>; 2] {
    let every = |pick: fn(usize, usize) -> usize| {
        let n = values.len();
        (0..n * n).map(|i| values[pick(i, n)]).collect()
    };
    [every(|i, n| i / n), every(|i, n| i % n)]
}

/// Tolerance of a result compared with the evaluator's.
#[derive(Clone, Copy)]
pub(crate) enum Tolerance {
    Exact,
    /// Representable steps: for f32 and f64, and for narrower types.
    Steps(u64, u64),
    /// For complex functions whose formula loses digits.
    Loose,
}

/// Returns the position of a value among the patterns of a type in numerical order; both zeros have one position.
fn order(ty: ElementType, x: Scalar) -> i128 {
    let bits = x.to_bits(ty);
    match ty.kind() {
        ElementKind::Float if ty.is_signed() => {
            let sign = 1_u64 << (ty.bit_width() - 1);
            let magnitude = i128::from(bits & (sign - 1));
            if bits & sign != 0 { -magnitude } else { magnitude }
        }
        ElementKind::Signed => x.as_i128().unwrap(),
        _ => i128::from(bits),
    }
}

pub(crate) fn agrees(ty: ElementType, got: Scalar, want: Scalar, tolerance: Tolerance) -> bool {
    match (got, want) {
        (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
            let epsilon = if ty == ElementType::C64 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            let limit = match tolerance {
                Tolerance::Exact => 4.0 * epsilon * c.hypot(d),
                Tolerance::Steps(..) => 40.0 * epsilon * c.hypot(d),
                // Logarithms of numbers near one, and powers of numbers whose logarithm is in the hundreds.
                Tolerance::Loose => 3e4 * epsilon * c.hypot(d) + 2.0 * epsilon,
            };
            let close = |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= limit;
            // On the branch cut the angle may be pi or -pi.
            let half_turn = |x: f64| matches!(tolerance, Tolerance::Loose) && close(x.abs(), std::f64::consts::PI);
            (close(a, c) || half_turn(a) && half_turn(c)) && close(b, d)
        }
        (Scalar::Float(a), Scalar::Float(b)) if a.is_nan() || b.is_nan() => a.is_nan() && b.is_nan(),
        _ => {
            let allowed = match tolerance {
                Tolerance::Exact | Tolerance::Loose => 0,
                Tolerance::Steps(wide, narrow) => i128::from(if ty.bit_width() >= 32 { wide } else { narrow }),
            };
            (order(ty, got) - order(ty, want)).abs() <= allowed
        }
    }
}

/// Returns an x86 target without FMA, f16 and rounding instructions, for which functions and conversions have separate
/// code; `None` unless this machine is an x86.
pub(crate) fn plain_x86() -> Option<Target> {
    static PLAIN: std::sync::OnceLock<Option<Target>> = std::sync::OnceLock::new();
    let make = || {
        let host = Target::host().unwrap();
        host.triple().starts_with("x86_64").then(|| Target::new(host.triple(), "x86-64", "").unwrap())
    };
    PLAIN.get_or_init(make).clone()
}

/// One type of each kind and form.
pub(crate) const TYPICAL: &[ElementType] = &[
    ElementType::Pred,
    ElementType::S4,
    ElementType::U8,
    ElementType::S32,
    ElementType::U64,
    ElementType::F8E4M3FN,
    ElementType::F8E8M0FNU,
    ElementType::F16,
    ElementType::BF16,
    ElementType::F32,
    ElementType::F64,
    ElementType::C64,
];

/// Compilation of an operation for a test.
pub(crate) struct Run<'a> {
    pub target: &'a Target,
    pub width: u32,
    pub options: EmitOptions,
}

impl Run<'_> {
    /// Runs an operation on operands of equal lengths; scalar code, which would be slow, on the first elements only.
    pub(crate) fn run(
        &self,
        op: &Op,
        operands: &[Literal],
        output: ElementType,
    ) -> std::result::Result<Vec<Scalar>, String> {
        let types: Vec<ElementType> = operands.iter().map(|x| x.array_shape().element_type()).collect();
        let (width, options) = (self.width, self.options);
        let signature = Signature { width, inputs: &types, output, masked: true, options };
        let kernel = Kernel::new(self.target, &signature, |e, x| elemental::operation(e, op, x, output));
        let kernel = kernel.map_err(|reason| format!("it is not emitted: {reason}"))?;
        // One element less than a multiple of the width, so that masks are used.
        let most = if width < 16 { 3000 } else { usize::MAX };
        let count = (operands[0].array_shape().element_count() - 1).min(most);
        let mut got = vec![0; (count + 1) * output.byte_width()];
        let size = count * output.byte_width();
        let inputs: Vec<&[u8]> =
            operands.iter().zip(&types).map(|(x, ty)| &x.bytes()[..count * ty.byte_width()]).collect();
        kernel.run_bytes(&inputs, &mut got[..size]);
        if got[size..].iter().any(|&byte| byte != 0) {
            return Err("it wrote beyond its mask".to_string());
        }
        Ok(got[..size].chunks(output.byte_width()).map(|bytes| Scalar::read(output, bytes)).collect())
    }
}

/// Runs an operation as scalars and as vectors, on operands of equal lengths.
fn check(
    op: &Op,
    result: Option<ElementType>,
    operands: &[Literal],
    tolerance: Tolerance,
) -> std::result::Result<(), String> {
    let types: Vec<ElementType> = operands.iter().map(|x| x.array_shape().element_type()).collect();
    let what = format!("{} of {types:?} to {result:?}", op.opcode());
    let want = oracle(op, result, operands);
    let target = Target::host().unwrap();
    let output = match &want {
        Ok(want) => want.array_shape().element_type(),
        Err(_) => result.unwrap_or(types[0]),
    };
    // Vectors for all types; scalars and a reduced processor for representative types.
    let typical = types.iter().chain(&result).all(|ty| TYPICAL.contains(ty));
    let plain =
        plain_x86().filter(|_| matches!(op, Op::Convert(_) | Op::Unary(_) | Op::Binary(_))).map(|target| (target, 4));
    let others = [Some((target.clone(), 1)), plain].into_iter().flatten().filter(|_| typical);
    for (target, width) in std::iter::once((target, 16)).chain(others) {
        let kernel = Run { target: &target, width, options: EmitOptions::default() };
        let (want, got) = match (&want, kernel.run(op, operands, output)) {
            (Ok(want), Ok(got)) => (want, got),
            (Err(_), Err(_)) => return Ok(()),
            (Ok(_), Err(reason)) => return Err(format!("{what}: {reason}")),
            (Err(reason), Ok(_)) => return Err(format!("{what} is emitted but not defined: {reason}")),
        };
        for (i, &value) in got.iter().enumerate() {
            let wanted = want.get(i);
            if !agrees(output, value, wanted, tolerance) {
                let x: Vec<Scalar> = operands.iter().map(|x| x.get(i)).collect();
                return Err(format!("{what}, width {width}: {x:?} gives {value:?}, the evaluator {wanted:?}"));
            }
        }
    }
    Ok(())
}

/// Runs checks on two threads, then fails with all messages.
pub(crate) fn check_all<T: Sync>(cases: &[T], check: impl Fn(&T) -> std::result::Result<(), String> + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    if let Err(reason) = check(case) {
                        failed.lock().unwrap().push(reason);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} failures: {failed:#?}", failed.len());
}

pub(crate) fn unary_tolerance(op: UnaryOp, ty: ElementType) -> Tolerance {
    use UnaryOp::*;
    match op {
        Abs | Sign | Sqrt if ty.is_complex() => Tolerance::Steps(2, 0),
        Abs | Ceil | CountLeadingZeros | Floor | Imag | IsFinite | Negate | Not | Popcnt | Real | RoundNearestAfz
        | RoundNearestEven | Sign | Sqrt => Tolerance::Exact,
        Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Cosh | Cosine | Erf | Exponential | ExponentialMinusOne
        | Log | LogPlusOne | Logistic | Rsqrt | Sine | Sinh | Tan | Tanh => Tolerance::Steps(3, 1),
    }
}

#[test]
fn unary() {
    let cases: Vec<_> = UnaryOp::ALL.iter().flat_map(|&op| ElementType::ALL.iter().map(move |&ty| (op, ty))).collect();
    check_all(&cases, |&(op, ty)| {
        check(&Unary::from(op).into(), None, &[literal(ty, &samples(ty, 1000))], unary_tolerance(op, ty))
    });
}

pub(crate) fn binary_tolerance(op: BinaryOp, ty: ElementType) -> Tolerance {
    match op {
        BinaryOp::Atan2 | BinaryOp::Power if ty.is_complex() => Tolerance::Loose,
        BinaryOp::Atan2 | BinaryOp::Power => Tolerance::Steps(4, 1),
        _ => Tolerance::Exact,
    }
}

#[test]
fn binary() {
    let cases: Vec<_> = BinaryOp::ALL.iter().flat_map(|&op| ElementType::ALL.iter().map(move |&ty| (op, ty))).collect();
    check_all(&cases, |&(op, ty)| {
        let [x, y] = pairs(ty);
        check(&Binary { op }.into(), None, &[literal(ty, &x), literal(ty, &y)], binary_tolerance(op, ty))
    });
}

#[test]
fn convert() {
    let all = ElementType::ALL;
    let cases: Vec<_> = all.iter().flat_map(|&from| all.iter().map(move |&to| (from, to))).collect();
    check_all(&cases, |&(from, to)| {
        check(&Convert.into(), Some(to), &[literal(from, &samples(from, 1 << 16))], Tolerance::Exact)
    });
}

#[test]
fn bitcast_convert() {
    let all = ElementType::ALL;
    let cases: Vec<_> = all.iter().flat_map(|&from| all.iter().map(move |&to| (from, to))).collect();
    check_all(&cases, |&(from, to)| match from.bit_width() == to.bit_width() {
        true => check(&BitcastConvert.into(), Some(to), &[literal(from, &samples(from, 1 << 16))], Tolerance::Exact),
        false => Ok(()),
    });
}

#[test]
fn compare() {
    use CompareDirection::*;
    let orders = [None, Some(CompareType::Float), Some(CompareType::TotalOrder), Some(CompareType::Signed)];
    let mut cases = Vec::new();
    for &ty in ElementType::ALL {
        for direction in [Eq, Ne, Ge, Gt, Le, Lt] {
            cases.extend(orders.map(|order| (ty, Compare { direction, order })));
        }
    }
    check_all(&cases, |(ty, op)| {
        let [x, y] = pairs(*ty);
        check(&op.clone().into(), None, &[literal(*ty, &x), literal(*ty, &y)], Tolerance::Exact)
    });
}

#[test]
fn select_and_clamp() {
    check_all(ElementType::ALL, |&ty| {
        let [x, y] = pairs(ty);
        let (x, y) = (literal(ty, &x), literal(ty, &y));
        let count = x.array_shape().element_count();
        let pred: Vec<Scalar> = (0..count).map(|i| Scalar::Pred(i % 3 == 0)).collect();
        let pred = literal(ElementType::Pred, &pred);
        let third: Vec<Scalar> = (0..count).map(|i| x.get((i * 7 + 3) % count)).collect();
        let third = literal(ty, &third);
        check(&Select.into(), None, &[pred, x.clone(), y.clone()], Tolerance::Exact)?;
        check(&Clamp.into(), None, &[x, third, y], Tolerance::Exact)
    });
}

#[test]
fn reduce_precision() {
    let floats: Vec<ElementType> = ElementType::ALL.iter().copied().filter(|ty| ty.is_float()).collect();
    let bits = [(5, 10), (8, 7), (4, 3), (2, 0), (1, 1), (11, 52), (8, 23), (3, 20), (6, 2)];
    let cases: Vec<_> = floats.iter().flat_map(|&ty| bits.map(|bits| (ty, bits))).collect();
    check_all(&cases, |&(ty, (exponent_bits, mantissa_bits))| {
        let op = ReducePrecision { exponent_bits, mantissa_bits };
        check(&op.into(), None, &[literal(ty, &samples(ty, 1000))], Tolerance::Exact)
    });
}

/// Without FMA their exact products overflowed; with FMA they overflowed if the quotient was one too great.
#[test]
fn remainders_near_the_largest_number() {
    let types = [ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::F16];
    check_all(&types, |&ty| {
        let largest = if ty == ElementType::F64 { f64::MAX } else { f64::from(f32::MAX) };
        let largest = if ty == ElementType::F16 { 65504.0 } else { largest };
        let parts = [1.0, 0.9999999, 0.75, 0.6, 0.5, 0.4, 1.0 / 3.0, 0.3, 1e-2, 3e-5, 7e-7, 1e-9];
        let pairs = parts.iter().flat_map(|a| parts.map(|b| (largest * a, -largest * b)));
        let (a, b): (Vec<_>, Vec<_>) = pairs.map(|(a, b)| (Scalar::Float(a), Scalar::Float(b))).unzip();
        let operands = [literal(ty, &a), literal(ty, &b)];
        check(&Binary { op: BinaryOp::Remainder }.into(), None, &operands, Tolerance::Exact)
    });
}

#[test]
fn narrow_floats_may_be_rounded_once() {
    let target = Target::host().unwrap();
    let ty = ElementType::BF16;
    // 256 has no bf16 neighbour nearer than 2: one addend alone is rounded away, both together are not.
    let [a, b] = [256.0, 0.75].map(|x| literal(ty, &[Scalar::Float(x); 16]));
    for (round_each_operation, sum) in [(true, 256.0), (false, 258.0)] {
        let options = EmitOptions { round_each_operation, ..EmitOptions::default() };
        let signature = Signature { width: 16, inputs: &[ty, ty], output: ty, masked: false, options };
        let kernel = Kernel::new(&target, &signature, |e, x| {
            let once = elemental::binary(e, BinaryOp::Add, x[0], x[1])?;
            elemental::binary(e, BinaryOp::Add, once, x[1])
        });
        let mut out = vec![0; 32];
        kernel.unwrap().run_bytes(&[a.bytes(), b.bytes()], &mut out);
        assert_eq!(Scalar::read(ty, &out[..2]), Scalar::Float(sum), "rounding each operation: {round_each_operation}");
    }
}
