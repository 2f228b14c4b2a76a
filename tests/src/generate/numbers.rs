//! Facts about the numbers in an array, so that results are compared as exactly as they deserve.
//!
//! Most results must agree bit for bit: data movement, integers, and float operations that IEEE 754 rounds correctly.
//! Where implementations may differ (functions, orders of summation) a bound on the difference is carried forward, and
//! operations that would make a small difference large (comparisons, conversions to integers, functions with poles) are
//! not applied to it.

use xla::compare::Tolerance;
use xla_hlo::{ElementKind, ElementType, FloatFormat, Scalar};

/// Facts about the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbers {
    /// No element is greater in size and none is NaN; infinite where anything may be there.
    pub bound: f64,
    /// Elements are multiples of this power of two; 0 where they need not be.
    pub grid: f64,
    /// Distance allowed between two right implementations.
    pub noise: Noise,
    /// Whether the sign and payload of a NaN are determined.
    pub patterns: bool,
    /// Whether the signs of zeros are determined: not those of sums in any order, nor those of a greatest or least
    /// value.
    pub zeros: bool,
    /// Whether these are rounded products, which may become part of a fused multiplication and addition.
    pub product: bool,
}

/// Distance allowed between two right implementations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Not at all.
    None,
    /// By that many units in the last place.
    Ulps(f64),
    /// By so much, whatever the value.
    Absolute(f64),
}

impl Numbers {
    /// Tolerance of results of these numbers.
    pub fn tolerance(&self, ty: ElementType) -> Tolerance {
        let (rtol, atol) = match self.noise {
            Noise::None => (0.0, 0.0),
            Noise::Ulps(ulps) => (ulps * epsilon(ty), ulps * least(ty)),
            Noise::Absolute(noise) => (0.0, noise),
        };
        Tolerance { rtol, atol, signed_zero: self.is_exact() && self.zeros }
    }

    /// Anything, but the same for everyone; NaNs aside.
    pub const EXACT: Numbers =
        Numbers { bound: f64::INFINITY, grid: 0.0, noise: Noise::None, patterns: false, zeros: true, product: false };

    /// Anything that was put there and never computed with.
    pub const GIVEN: Numbers = Numbers { patterns: true, ..Numbers::EXACT };

    /// Values up to `bound`, the same for everyone.
    pub fn within(bound: f64) -> Numbers {
        Numbers { bound, ..Numbers::GIVEN }
    }

    /// Whether everyone gets the same.
    pub fn is_exact(&self) -> bool {
        self.noise == Noise::None
    }

    /// Whether nothing remains to be settled by whatever comes later: signs of zeros and the rounding of products are.
    pub fn is_settled(&self) -> bool {
        self.is_exact() && self.zeros && !self.product
    }

    /// Whether all bits are the same for everyone, those of NaNs included.
    pub fn is_pattern(&self) -> bool {
        self.is_exact() && self.zeros && (self.patterns || self.bound.is_finite())
    }

    /// The difference as a number to compute with; `None` where there is no bound.
    pub fn absolute(&self, ty: ElementType) -> Option<f64> {
        match self.noise {
            Noise::None => Some(0.0),
            Noise::Ulps(ulps) => Some(ulps * epsilon(ty) * self.bound).filter(|noise| noise.is_finite()),
            Noise::Absolute(noise) => Some(noise),
        }
    }

    /// Values up to `bound` that may differ by `noise` and by `ulps` roundings; `None` where nothing useful is known.
    pub fn noisy(ty: ElementType, bound: f64, noise: f64, ulps: f64) -> Option<Numbers> {
        // Well below the greatest value, so that it does not matter who overflows.
        (bound <= greatest(ty) / 4.0 && (noise + epsilon(ty) * bound * ulps) * 2.0 <= bound).then(|| Numbers {
            bound,
            grid: 0.0,
            noise: Noise::Absolute(noise + epsilon(ty) * bound * ulps),
            patterns: false,
            zeros: false,
            product: false,
        })
    }

    /// Values computed in one correctly rounded step from exact ones: exact, and within `bound` if the type has such
    /// values.
    pub fn rounded(ty: ElementType, bound: f64, grid: f64) -> Numbers {
        if bound.is_nan() || bound > greatest(ty) {
            return Numbers::EXACT;
        }
        let grid = if fits_grid(ty, bound, grid) { grid } else { 0.0 };
        Numbers { grid, ..Numbers::within(bound) }
    }

    /// Facts that hold of both arrays, and so of a selection between them.
    pub fn either(ty: ElementType, a: &Numbers, b: &Numbers) -> Option<Numbers> {
        let both = Numbers {
            bound: a.bound.max(b.bound),
            grid: a.grid.min(b.grid),
            noise: Noise::None,
            patterns: a.is_pattern() && b.is_pattern(),
            zeros: a.zeros && b.zeros,
            product: a.product || b.product,
        };
        if a.is_exact() && b.is_exact() {
            return Some(both);
        }
        let noise = a.absolute(ty)?.max(b.absolute(ty)?);
        both.bound.is_finite().then_some(Numbers { grid: 0.0, noise: Noise::Absolute(noise), ..both })
    }

    /// The same where signs of zeros are determined only if they are in `operands`.
    #[must_use]
    pub fn zeros_of(self, operands: &[&Numbers]) -> Numbers {
        Numbers { zeros: self.zeros && operands.iter().all(|n| n.zeros), ..self }
    }

    /// The same where neither NaN patterns nor signs of zeros are determined.
    #[must_use]
    pub fn as_values(self) -> Numbers {
        Numbers { patterns: false, zeros: false, product: false, ..self }
    }
}

/// Whether sums of multiples of `grid` that stay within `bound` are exact in the type.
pub fn fits_grid(ty: ElementType, bound: f64, grid: f64) -> bool {
    grid > 0.0 && bound / grid <= 1.0 / epsilon(ty) && grid >= least(ty)
}

/// The distance of 1 to the next greater number; 0 for types that are not floating.
pub fn epsilon(ty: ElementType) -> f64 {
    match FloatFormat::of(ty.real_part()) {
        Some(format) => 0.5f64.powi(format.mantissa_bits as i32),
        // Powers of two alone.
        None if ty == ElementType::F8E8M0FNU => 1.0,
        None => 0.0,
    }
}

/// The greatest finite value of the type.
pub fn greatest(ty: ElementType) -> f64 {
    match ty.kind() {
        ElementKind::Pred => 1.0,
        ElementKind::Signed => 2f64.powi(ty.bit_width() as i32 - 1) - 1.0,
        ElementKind::Unsigned => 2f64.powi(ty.bit_width() as i32) - 1.0,
        ElementKind::Float | ElementKind::Complex => float(ty, |format| format.greatest(), 127),
    }
}

/// The least positive value of a float type; of others 1.
pub fn least(ty: ElementType) -> f64 {
    match ty.kind() {
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => 1.0,
        ElementKind::Float | ElementKind::Complex => float(ty, |_| 1, -127),
    }
}

fn float(ty: ElementType, pattern: impl Fn(&FloatFormat) -> u64, exponent: i32) -> f64 {
    let ty = ty.real_part();
    match FloatFormat::of(ty).map(|format| Scalar::from_bits(ty, pattern(&format))) {
        Some(Scalar::Float(value)) => value,
        _ => 2f64.powi(exponent),
    }
}
