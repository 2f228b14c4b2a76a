//! Elementwise operations, and their effect on properties of numbers.

use xla_hlo::ops::{BinaryOp, Compare, CompareDirection, CompareType, Unary, UnaryOp};
use xla_hlo::{ArrayShape, ElementKind, ElementType};

use super::graph::{Graph, Value};
use super::numbers::{Noise, Numbers, epsilon, greatest};

/// Error of functions, in units in the last place.
const ULPS: f64 = 4.0;
/// Error of functions of complex numbers, in units of the last place of the absolute value.
const COMPLEX_ULPS: f64 = 32.0;

impl Graph<'_> {
    pub(super) fn unary(&mut self) -> Option<Value> {
        let op = self.random.pick(UnaryOp::ALL);
        let x = self.any(|v| v.ty() != ElementType::Pred || op == UnaryOp::Not)?;
        let numbers = unary(op, x.ty(), &x.numbers);
        self.put(numbers, |b| b.instruction(Unary::from(op), None, [x.id]))
    }

    pub(super) fn binary(&mut self) -> Option<Value> {
        let op = self.random.pick(BinaryOp::ALL);
        let x = self.any(|_| true)?;
        let ty = x.ty();
        let y = if self.random.percent(5) {
            x.clone()
        } else {
            self.like(ty, x.dims(), |n| binary(op, ty, &x.numbers, n).is_some())
        };
        let (x, y) = if self.random.percent(50) { (x, y) } else { (y, x) };
        let numbers = binary(op, ty, &x.numbers, &y.numbers);
        self.put(numbers, |b| b.instruction(xla_hlo::ops::Binary { op }, None, [x.id, y.id]))
    }

    pub(super) fn compare(&mut self) -> Option<Value> {
        use CompareDirection::*;
        let x = self.any(|v| v.numbers.is_exact())?;
        let y = self.like(x.ty(), x.dims(), Numbers::is_exact);
        let patterns = x.numbers.is_pattern() && y.numbers.is_pattern();
        let total = x.ty().is_float() && patterns && self.random.percent(30);
        let order = total.then_some(CompareType::TotalOrder);
        let op = Compare { direction: self.random.pick(&[Eq, Ne, Ge, Gt, Le, Lt]), order };
        self.put(Some(Numbers::within(1.0)), |b| b.instruction(op, None, [x.id, y.id]))
    }

    pub(super) fn select(&mut self) -> Option<Value> {
        let x = self.any(|_| true)?;
        let y = self.like(x.ty(), x.dims(), |_| true);
        let dims = if self.random.percent(20) { vec![] } else { x.dims().to_vec() };
        let pred = self.like(ElementType::Pred, &dims, |_| true);
        let numbers = Numbers::either(x.ty(), &x.numbers, &y.numbers);
        self.put(numbers, |b| b.select(pred.id, x.id, y.id))
    }

    pub(super) fn clamp(&mut self) -> Option<Value> {
        let x = self.any(|v| !v.ty().is_complex())?;
        let ty = x.ty();
        let bound = |graph: &mut Self| {
            let dims = if graph.random.percent(50) { vec![] } else { x.dims().to_vec() };
            graph.like(ty, &dims, |_| true)
        };
        let (low, high) = (bound(self), bound(self));
        let numbers = Numbers::either(ty, &low.numbers, &x.numbers)
            .and_then(|n| Numbers::either(ty, &n, &high.numbers))
            .map(|n| if ty.is_float() { n.as_values() } else { n });
        self.put(numbers, |b| b.clamp(low.id, x.id, high.id))
    }

    pub(super) fn convert(&mut self) -> Option<Value> {
        let x = self.any(|_| true)?;
        let to = if self.random.percent(50) { self.ty() } else { self.random.pick(ElementType::ALL) };
        let numbers = convert(x.ty(), to, &x.numbers);
        self.put(numbers, |b| b.convert(x.id, to))
    }

    pub(super) fn reduce_precision(&mut self) -> Option<Value> {
        let x = self.any(|v| v.ty().is_float() && v.numbers.is_exact())?;
        let (exponent, mantissa) = (self.random.between(1, 11) as u32, self.random.between(0, 24) as u32);
        let numbers = Numbers::EXACT.zeros_of(&[&x.numbers]);
        self.put(Some(numbers), |b| b.reduce_precision(x.id, exponent, mantissa))
    }

    pub(super) fn bitcast_convert(&mut self) -> Option<Value> {
        let x = self.any(|v| v.numbers.is_pattern() && !v.ty().is_complex())?;
        let to = self.random.pick(ElementType::ALL);
        let (from_bits, to_bits) = (x.ty().bit_width(), to.bit_width());
        let mut dims = x.dims().to_vec();
        if from_bits > to_bits {
            dims.push(from_bits / to_bits);
        } else if from_bits < to_bits {
            dims.pop();
        }
        if !self.is_small(&dims) {
            return None;
        }
        self.put(Some(Numbers::GIVEN), |b| b.bitcast_convert(x.id, ArrayShape::new(to, dims).into()))
    }
}

/// Returns the properties of a function's results.
pub(super) fn unary(op: UnaryOp, ty: ElementType, x: &Numbers) -> Option<Numbers> {
    match ty.kind() {
        ElementKind::Pred => Some(Numbers::EXACT),
        ElementKind::Signed | ElementKind::Unsigned => Some(match op {
            UnaryOp::Abs | UnaryOp::Negate if ty.is_signed() => Numbers::rounded(ty, x.bound, 1.0),
            _ => Numbers::EXACT,
        }),
        ElementKind::Float => float_unary(op, ty, x),
        ElementKind::Complex => complex_unary(op, x),
    }
}

fn float_unary(op: UnaryOp, ty: ElementType, x: &Numbers) -> Option<Numbers> {
    use UnaryOp::*;
    let exact = |bound: f64, grid| x.is_exact().then(|| Numbers::rounded(ty, bound, grid).zeros_of(&[x]));
    match op {
        Negate | Real => Some(Numbers { patterns: false, ..*x }),
        Abs => Some(Numbers { patterns: false, zeros: true, ..*x }),
        Imag => Some(Numbers { grid: 1.0, ..Numbers::within(1.0) }),
        IsFinite => x.is_exact().then(|| Numbers::within(1.0)),
        Ceil | Floor | RoundNearestAfz | RoundNearestEven => exact(x.bound.ceil(), 1.0),
        Sign if x.bound.is_finite() => exact(1.0, 1.0),
        Sign | Sqrt => exact(f64::INFINITY, 0.0),
        CountLeadingZeros | Not | Popcnt => None,
        Rsqrt if !x.zeros => None,
        Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Cosh | Cosine | Erf | Exponential | ExponentialMinusOne
        | Log | LogPlusOne | Logistic | Rsqrt | Sine | Sinh | Tan | Tanh => function(op, ty, x),
    }
}

/// Returns the properties of results of functions that are not correctly rounded.
fn function(op: UnaryOp, ty: ElementType, x: &Numbers) -> Option<Numbers> {
    let (bound, slope) = range(op, x.bound);
    if x.is_exact() {
        let bound = if bound <= greatest(ty) / 4.0 { bound } else { f64::INFINITY };
        return Some(Numbers { bound, noise: Noise::Ulps(ULPS), ..Numbers::EXACT }.as_values());
    }
    let noise = x.absolute(ty)? * slope;
    if !noise.is_finite() {
        return None;
    }
    Numbers::noisy(ty, bound, noise, ULPS)
}

/// Returns bounds on the magnitudes of a function's values and slopes, for arguments within a bound; infinite if it has
/// a pole or the end of its domain there.
fn range(op: UnaryOp, x: f64) -> (f64, f64) {
    use UnaryOp::*;
    let none = (f64::INFINITY, f64::INFINITY);
    if !x.is_finite() {
        return none;
    }
    match op {
        Tanh | Sine | Cosine => (1.0, 1.0),
        Erf => (1.0, 1.2),
        Logistic => (1.0, 0.25),
        Atan => (1.6, 1.0),
        Asinh => (x.asinh(), 1.0),
        Cbrt => (x.cbrt().max(1.0), f64::INFINITY),
        Exponential | ExponentialMinusOne | Sinh | Cosh => (x.exp(), x.exp()),
        Abs | Acos | Acosh | Asin | Atanh | Ceil | CountLeadingZeros | Floor | Imag | IsFinite | Log | LogPlusOne
        | Negate | Not | Popcnt | Real | RoundNearestAfz | RoundNearestEven | Rsqrt | Sign | Sqrt | Tan => none,
    }
}

fn complex_unary(op: UnaryOp, x: &Numbers) -> Option<Numbers> {
    match op {
        UnaryOp::Negate => Some(Numbers { patterns: false, ..*x }),
        // The error of one part is relative to the magnitude of the other.
        UnaryOp::Real | UnaryOp::Imag => {
            (!matches!(x.noise, Noise::Ulps(_))).then_some(Numbers { patterns: false, ..*x })
        }
        // Results for infinities differ between implementations.
        _ if x.is_exact() && x.zeros && x.bound <= 8.0 => Some(complex_function()),
        _ => None,
    }
}

/// Returns the properties of results of complex functions for arguments of moderate magnitude.
fn complex_function() -> Numbers {
    Numbers { noise: Noise::Ulps(COMPLEX_ULPS), ..Numbers::EXACT }.as_values()
}

/// Returns the properties of a binary operation's results.
pub(super) fn binary(op: BinaryOp, ty: ElementType, x: &Numbers, y: &Numbers) -> Option<Numbers> {
    match ty.kind() {
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => Some(whole_binary(op, ty, x, y)),
        ElementKind::Float => float_binary(op, ty, x, y),
        ElementKind::Complex => complex_binary(op, ty, x, y),
    }
}

fn whole_binary(op: BinaryOp, ty: ElementType, x: &Numbers, y: &Numbers) -> Numbers {
    match op {
        BinaryOp::Add => Numbers::rounded(ty, x.bound + y.bound, 1.0),
        BinaryOp::Subtract if ty.is_signed() => Numbers::rounded(ty, x.bound + y.bound, 1.0),
        BinaryOp::Multiply => Numbers::rounded(ty, x.bound * y.bound, 1.0),
        BinaryOp::Maximum | BinaryOp::Minimum => Numbers::either(ty, x, y).unwrap_or(Numbers::EXACT),
        _ => Numbers::EXACT,
    }
}

fn float_binary(op: BinaryOp, ty: ElementType, x: &Numbers, y: &Numbers) -> Option<Numbers> {
    use BinaryOp::*;
    let is_exact = x.is_exact() && y.is_exact();
    match op {
        Add | Subtract => sum(ty, x, y),
        Multiply if is_exact => {
            let numbers = Numbers::rounded(ty, x.bound * y.bound, x.grid * y.grid).zeros_of(&[x, y]);
            // Narrow types are rounded after each operation.
            Some(Numbers { product: numbers.grid == 0.0 && ty.bit_width() >= 32, ..numbers })
        }
        Multiply => {
            let noise = x.absolute(ty)? * y.bound + y.absolute(ty)? * x.bound;
            Numbers::noisy(ty, x.bound * y.bound, noise, 2.0)
        }
        Maximum | Minimum => Numbers::either(ty, x, y).map(Numbers::as_values),
        Complex => Numbers::either(ty, x, y).map(|n| Numbers { patterns: false, ..n }),
        Atan2 | Power => (is_exact && x.zeros && y.zeros)
            .then_some(Numbers { noise: Noise::Ulps(ULPS), ..Numbers::EXACT }.as_values()),
        // GPUs divide within 2 ulp.
        Divide if ty == ElementType::F32 => (is_exact && y.zeros)
            .then(|| Numbers { noise: Noise::Ulps(ULPS), ..Numbers::EXACT.zeros_of(&[x]) }.as_values()),
        Divide => (is_exact && y.zeros).then(|| Numbers::EXACT.zeros_of(&[x])),
        Remainder => is_exact.then(|| Numbers::EXACT.zeros_of(&[x])),
        And | Mulhi | Or | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Xor => None,
    }
}

/// Returns the properties of a sum or difference. If an operand is a product, the two may be fused, and the product is
/// not rounded.
fn sum(ty: ElementType, x: &Numbers, y: &Numbers) -> Option<Numbers> {
    let bound = x.bound + y.bound;
    if x.is_exact() && y.is_exact() && !x.product && !y.product {
        return Some(Numbers::rounded(ty, bound, x.grid.min(y.grid)).zeros_of(&[x, y]));
    }
    let unrounded = |n: &Numbers| if n.product { epsilon(ty) * n.bound } else { 0.0 };
    Numbers::noisy(ty, bound, x.absolute(ty)? + y.absolute(ty)? + unrounded(x) + unrounded(y), 1.0)
}

fn complex_binary(op: BinaryOp, ty: ElementType, x: &Numbers, y: &Numbers) -> Option<Numbers> {
    let is_tame = |n: &Numbers| n.is_exact() && n.zeros && n.bound <= 8.0;
    match op {
        BinaryOp::Add | BinaryOp::Subtract => sum(ty, x, y),
        BinaryOp::Multiply => {
            let noise = x.absolute(ty)? * y.bound + y.absolute(ty)? * x.bound;
            Numbers::noisy(ty, 2.0 * x.bound * y.bound, 2.0 * noise, 4.0)
        }
        // At a branch cut the last bit of an argument changes the angle by a full circle.
        BinaryOp::Atan2 => None,
        BinaryOp::Power | BinaryOp::Divide if is_tame(x) && is_tame(y) => Some(complex_function()),
        _ => None,
    }
}

pub(super) fn convert(from: ElementType, to: ElementType, x: &Numbers) -> Option<Numbers> {
    let to_float = to.is_float() || to.is_complex();
    if x.is_exact() {
        let numbers = Numbers::rounded(to, x.bound, if x.grid >= 1.0 || to_float { x.grid } else { 1.0 });
        return Some(if to_float { numbers.zeros_of(&[x]) } else { numbers });
    }
    if to_float { Numbers::noisy(to, x.bound, x.absolute(from)?, 1.0) } else { None }
}
