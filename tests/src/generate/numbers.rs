//! Properties of the numbers in an array, which determine the accuracy of comparisons.
//!
//! Most results must agree bit for bit: data movement, integers, and float operations that IEEE 754 rounds correctly.
//! If implementations may differ (functions, orders of summation), a bound on the difference is propagated. Operations
//! that would amplify a small difference (comparisons, conversions to integers, functions with poles) are not applied
//! to such arrays.

use xla::compare::Tolerance;
use xla_hlo::{ElementKind, ElementType, FloatFormat, Scalar};

/// Properties of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbers {
    /// Bound on the magnitude of elements, none of which is a NaN; infinite if elements are arbitrary.
    pub bound: f64,
    /// Power of two that divides all elements; 0 if there is none.
    pub grid: f64,
    /// Allowed difference of two correct implementations.
    pub noise: Noise,
    /// Whether the sign and payload of a NaN are determined.
    pub patterns: bool,
    /// Whether the signs of zeros are determined. They are not for sums in unspecified order, and for maxima and
    /// minima.
    pub zeros: bool,
    /// Whether the elements are rounded products, which may be fused with a later addition.
    pub product: bool,
}

/// Allowed difference of two correct implementations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// No difference.
    None,
    /// Difference in units in the last place.
    Ulps(f64),
    /// Absolute difference, for all values.
    Absolute(f64),
}

impl Numbers {
    /// Returns the tolerance of results with these properties.
    pub fn tolerance(&self, ty: ElementType) -> Tolerance {
        let (rtol, atol) = match self.noise {
            Noise::None => (0.0, 0.0),
            Noise::Ulps(ulps) => (ulps * epsilon(ty), ulps * least(ty)),
            Noise::Absolute(noise) => (0.0, noise),
        };
        Tolerance { rtol, atol, signed_zero: self.is_exact() && self.zeros }
    }

    /// Arbitrary values, equal in all implementations except for NaN patterns.
    pub const EXACT: Numbers =
        Numbers { bound: f64::INFINITY, grid: 0.0, noise: Noise::None, patterns: false, zeros: true, product: false };

    /// Arbitrary inputs, with which nothing has been computed.
    pub const GIVEN: Numbers = Numbers { patterns: true, ..Numbers::EXACT };

    /// Returns the properties of values up to `bound` that are equal in all implementations.
    pub fn within(bound: f64) -> Numbers {
        Numbers { bound, ..Numbers::GIVEN }
    }

    /// Whether all implementations compute equal values.
    pub fn is_exact(&self) -> bool {
        self.noise == Noise::None
    }

    /// Whether no later operation can introduce a difference: signs of zeros and rounding of products are determined.
    pub fn is_settled(&self) -> bool {
        self.is_exact() && self.zeros && !self.product
    }

    /// Whether all bits are equal in all implementations, including those of NaNs.
    pub fn is_pattern(&self) -> bool {
        self.is_exact() && self.zeros && (self.patterns || self.bound.is_finite())
    }

    /// Returns the allowed difference as an absolute number; `None` if it is unbounded.
    pub fn absolute(&self, ty: ElementType) -> Option<f64> {
        match self.noise {
            Noise::None => Some(0.0),
            Noise::Ulps(ulps) => Some(ulps * epsilon(ty) * self.bound).filter(|noise| noise.is_finite()),
            Noise::Absolute(noise) => Some(noise),
        }
    }

    /// Returns the properties of values up to `bound` that may differ by `noise` and by `ulps` roundings; `None` if the
    /// difference is too large to be useful.
    pub fn noisy(ty: ElementType, bound: f64, noise: f64, ulps: f64) -> Option<Numbers> {
        // The bound is well below the greatest value, so that no implementation overflows.
        (bound <= greatest(ty) / 4.0 && (noise + epsilon(ty) * bound * ulps) * 2.0 <= bound).then(|| Numbers {
            bound,
            grid: 0.0,
            noise: Noise::Absolute(noise + epsilon(ty) * bound * ulps),
            patterns: false,
            zeros: false,
            product: false,
        })
    }

    /// Returns the properties of values that one correctly rounded operation computes from exact ones: exact, and
    /// within `bound` if the type has such values.
    pub fn rounded(ty: ElementType, bound: f64, grid: f64) -> Numbers {
        if bound.is_nan() || bound > greatest(ty) {
            return Numbers::EXACT;
        }
        let grid = if fits_grid(ty, bound, grid) { grid } else { 0.0 };
        Numbers { grid, ..Numbers::within(bound) }
    }

    /// Returns the properties that hold for both arrays, and so for a selection between them.
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

    /// Restricts the determined signs of zeros to the case that they are determined in all `operands`.
    #[must_use]
    pub fn zeros_of(self, operands: &[&Numbers]) -> Numbers {
        Numbers { zeros: self.zeros && operands.iter().all(|n| n.zeros), ..self }
    }

    /// Marks NaN patterns and signs of zeros as not determined.
    #[must_use]
    pub fn as_values(self) -> Numbers {
        Numbers { patterns: false, zeros: false, product: false, ..self }
    }
}

/// Whether sums of multiples of `grid` within `bound` are exact in the type.
pub fn fits_grid(ty: ElementType, bound: f64, grid: f64) -> bool {
    grid > 0.0 && bound / grid <= 1.0 / epsilon(ty) && grid >= least(ty)
}

/// Returns the distance of 1 to the next greater number; 0 for types that are not floats.
pub fn epsilon(ty: ElementType) -> f64 {
    match FloatFormat::of(ty.real_part()) {
        Some(format) => 0.5f64.powi(format.mantissa_bits as i32),
        // The type has only powers of two.
        None if ty == ElementType::F8E8M0FNU => 1.0,
        None => 0.0,
    }
}

/// Returns the greatest finite value of the type.
pub fn greatest(ty: ElementType) -> f64 {
    match ty.kind() {
        ElementKind::Pred => 1.0,
        ElementKind::Signed => 2f64.powi(ty.bit_width() as i32 - 1) - 1.0,
        ElementKind::Unsigned => 2f64.powi(ty.bit_width() as i32) - 1.0,
        ElementKind::Float | ElementKind::Complex => float(ty, |format| format.greatest(), 127),
    }
}

/// Returns the least positive value of a float type; 1 for other types.
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
