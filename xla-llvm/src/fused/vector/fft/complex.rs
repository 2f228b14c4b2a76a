//! Complex lanes.

use std::ops::{Add, Sub};

use crate::lanes::Lanes;

/// Complex numbers, one per lane.
#[derive(Clone, Copy)]
pub(super) struct Complex<'e, 'ctx> {
    pub re: Lanes<'e, 'ctx>,
    pub im: Lanes<'e, 'ctx>,
}

impl Complex<'_, '_> {
    /// Returns the conjugates.
    pub fn conjugate(self) -> Self {
        Complex { im: -self.im, ..self }
    }

    /// Exchanges real and imaginary parts.
    pub fn swapped(self) -> Self {
        Complex { re: self.im, im: self.re }
    }

    /// Multiplies by `-i`.
    pub fn times_minus_i(self) -> Self {
        Complex { re: self.im, im: -self.re }
    }
}

impl Add for Complex<'_, '_> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex<'_, '_> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Complex { re: self.re - other.re, im: self.im - other.im }
    }
}
