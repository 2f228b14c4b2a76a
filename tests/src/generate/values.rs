//! Inputs and constants: multiples of powers of two, moderate numbers, and special values.

use xla_hlo::{ArrayShape, ElementKind, ElementType, Literal, Scalar};

use super::numbers::{Numbers, epsilon, greatest, least};
use super::random::Random;

/// Distribution of generated values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temper {
    /// Few multiples of a power of two, whose sums and products are exact.
    Grid,
    /// Numbers of moderate magnitude.
    Smooth,
    /// NaN, infinities, both zeros, subnormal and greatest numbers, and random bit patterns, mixed with ordinary
    /// numbers.
    Wild,
}

impl Temper {
    /// Returns a random distribution, mostly a moderate one.
    pub fn any(random: &mut Random) -> Temper {
        random.pick(&[Temper::Grid, Temper::Grid, Temper::Smooth, Temper::Smooth, Temper::Wild])
    }
}

/// Returns values for an array, and their properties.
pub fn literal(random: &mut Random, shape: &ArrayShape, temper: Temper) -> (Literal, Numbers) {
    let ty = shape.element_type();
    let (bound, grid) = extent(ty, temper);
    let part = ty.real_part();
    let mut one = || element(random, part, temper, bound, grid);
    let literal = Literal::from_fn(shape, |_| match (one(), ty.is_complex()) {
        (Scalar::Float(re), true) => match one() {
            Scalar::Float(im) => Scalar::Complex(re, im),
            _ => Scalar::Complex(re, 0.0),
        },
        (value, _) => value,
    });
    let literal = literal.unwrap_or_else(|error| panic!("an array of moderate size: {error}"));
    let numbers = if temper == Temper::Wild { Numbers::GIVEN } else { Numbers { grid, ..Numbers::within(bound) } };
    (literal, numbers)
}

/// Returns the bound and grid of the values of a type.
pub(super) fn extent(ty: ElementType, temper: Temper) -> (f64, f64) {
    match ty.kind() {
        ElementKind::Pred => (1.0, 1.0),
        ElementKind::Signed => (2f64.powi(ty.bit_width().min(4) as i32 - 1), 1.0),
        ElementKind::Unsigned => (2f64.powi(ty.bit_width().min(4) as i32) - 1.0, 1.0),
        ElementKind::Float | ElementKind::Complex if temper == Temper::Grid => {
            let step = if epsilon(ty) < 0.01 { 0.125 } else { 1.0 };
            // F8E8M0FNU has neither zero nor sign, only powers of two.
            if ty == ElementType::F8E8M0FNU { (4.0, 0.5) } else { (4.0, step) }
        }
        ElementKind::Float | ElementKind::Complex => (4.0, 0.0),
    }
}

fn element(random: &mut Random, ty: ElementType, temper: Temper, bound: f64, grid: f64) -> Scalar {
    match (ty.kind(), temper) {
        (ElementKind::Pred, _) => Scalar::Pred(random.percent(50)),
        (ElementKind::Signed, Temper::Wild) => Scalar::Signed(integer(random, ty) as i64).rounded(ty),
        (ElementKind::Unsigned, Temper::Wild) => Scalar::Unsigned(integer(random, ty)).rounded(ty),
        (ElementKind::Signed, _) => Scalar::Signed(random.below(2 * bound as usize) as i64 - bound as i64),
        (ElementKind::Unsigned, _) => Scalar::Unsigned(random.below(bound as usize + 1) as u64),
        (ElementKind::Float | ElementKind::Complex, Temper::Wild) => Scalar::Float(special(random, ty)),
        (ElementKind::Float | ElementKind::Complex, _) if ty == ElementType::F8E8M0FNU => {
            Scalar::Float(random.pick(&[0.5, 1.0, 2.0, 4.0]))
        }
        (ElementKind::Float | ElementKind::Complex, Temper::Grid) => {
            let steps = (bound / grid) as usize;
            Scalar::Float((random.below(2 * steps + 1) as f64 - steps as f64) * grid)
        }
        (ElementKind::Float | ElementKind::Complex, Temper::Smooth) => {
            Scalar::Float((random.unit() * 2.0 - 1.0) * bound).rounded(ty)
        }
    }
}

/// Returns an integer's bits: extremes, small numbers, or arbitrary bits.
fn integer(random: &mut Random, ty: ElementType) -> u64 {
    let top = 1u64 << (ty.bit_width() - 1);
    let edges = [0, 1, 2, u64::MAX, top, top - 1, top.wrapping_add(1), top.wrapping_neg(), 31, 32, 63, 64, 65];
    match random.below(10) {
        0..3 => random.pick(&edges),
        3..7 => (random.below(17) as u64).wrapping_sub(8),
        _ => random.bits(),
    }
}

fn special(random: &mut Random, ty: ElementType) -> f64 {
    let (least, greatest) = (least(ty), greatest(ty));
    let edges = [
        f64::NAN,
        f64::INFINITY,
        0.0,
        least,
        least * 3.0,
        greatest,
        greatest / 2.0,
        1.0,
        1.0 + epsilon(ty),
        epsilon(ty),
        0.5,
        1.5,
        2.5,
        1e-3,
        127.5,
        2147483648.0,
        1e18,
    ];
    let value = match random.below(10) {
        0..4 => random.pick(&edges) * if random.percent(50) { -1.0 } else { 1.0 },
        4..8 => (random.unit() * 2.0 - 1.0) * 4.0,
        _ => match Scalar::from_bits(ty, random.bits()) {
            Scalar::Float(value) => value,
            _ => 0.0,
        },
    };
    match Scalar::Float(value).rounded(ty) {
        Scalar::Float(value) => value,
        _ => value,
    }
}
