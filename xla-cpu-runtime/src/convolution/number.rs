//! Element types of convolutions, with multiply-add on vectors.

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Simd, c32, c64};
use std::slice::{from_mut, from_ref};

/// Type whose products are summed, as scalars and as vectors of the machine's width.
pub(super) trait Number: Copy + Send + Sync + 'static {
    /// Additive identity.
    const ZERO: Self;

    /// Vector register of numbers.
    type Register<S: Simd>: Copy;

    /// Returns a vector with `x` in each lane.
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Register<S>;

    /// Returns `a + b`.
    fn add<S: Simd>(simd: S, a: Self::Register<S>, b: Self::Register<S>) -> Self::Register<S>;

    /// Returns `a * b + sum`.
    fn multiply_add<S: Simd>(
        simd: S,
        a: Self::Register<S>,
        b: Self::Register<S>,
        sum: Self::Register<S>,
    ) -> Self::Register<S>;

    /// Corrects the sign of a zero sum of products that started from zero. For complex products the library subtracts
    /// sums, and -0 - (0 - 0) is -0, but the sum of 0 and -0 is 0.
    #[inline(always)]
    fn sum_from_zero<S: Simd>(_: S, sum: Self::Register<S>) -> Self::Register<S> {
        sum
    }

    /// Returns `a + b` of scalars.
    fn plus(self, other: Self) -> Self;

    /// Returns `a * b` of scalars.
    fn times(self, other: Self) -> Self;

    /// Whether the product with zero is zero.
    fn is_finite(self) -> bool;
}

/// Returns the number of lanes of a vector.
pub(super) const fn lanes<T: Number, S: Simd>() -> usize {
    size_of::<T::Register<S>>() / size_of::<T>()
}

macro_rules! library_number {
    ($ty:ty, $zero:expr, $register:ident, $splat:ident, $add:ident, $mul_add:ident, $makes_negative_zeros:literal) => {
        impl Number for $ty {
            const ZERO: Self = $zero;

            type Register<S: Simd> = S::$register;

            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$register {
                simd.$splat(x)
            }

            #[inline(always)]
            fn add<S: Simd>(simd: S, a: S::$register, b: S::$register) -> S::$register {
                simd.$add(a, b)
            }

            #[inline(always)]
            fn multiply_add<S: Simd>(simd: S, a: S::$register, b: S::$register, sum: S::$register) -> S::$register {
                simd.$mul_add(a, b, sum)
            }

            #[inline(always)]
            fn sum_from_zero<S: Simd>(simd: S, sum: S::$register) -> S::$register {
                if $makes_negative_zeros { simd.$add(sum, simd.$splat(Self::ZERO)) } else { sum }
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn times(self, other: Self) -> Self {
                self * other
            }

            fn is_finite(self) -> bool {
                <$ty>::is_finite(self)
            }
        }
    };
}

library_number!(f32, 0.0, f32s, splat_f32s, add_f32s, mul_add_e_f32s, false);
library_number!(f64, 0.0, f64s, splat_f64s, add_f64s, mul_add_e_f64s, false);
library_number!(c32, c32::new(0.0, 0.0), c32s, splat_c32s, add_c32s, mul_add_e_c32s, true);
library_number!(c64, c64::new(0.0, 0.0), c64s, splat_c64s, add_c64s, mul_add_e_c64s, true);

/// Implements [`Number`] for integers modulo a power of two, as loops over lanes that the compiler vectorizes.
macro_rules! wrapping_number {
    ($ty:ty, $register:ident, $splat:ident) => {
        impl Number for $ty {
            const ZERO: Self = 0;

            type Register<S: Simd> = S::$register;

            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$register {
                simd.$splat(x)
            }

            #[inline(always)]
            fn add<S: Simd>(_: S, mut a: S::$register, b: S::$register) -> S::$register {
                let sums = cast_slice_mut::<_, $ty>(from_mut(&mut a));
                for (sum, &b) in sums.iter_mut().zip(cast_slice::<_, $ty>(from_ref(&b))) {
                    *sum = sum.wrapping_add(b);
                }
                a
            }

            #[inline(always)]
            fn multiply_add<S: Simd>(_: S, a: S::$register, b: S::$register, mut sum: S::$register) -> S::$register {
                let sums = cast_slice_mut::<_, $ty>(from_mut(&mut sum));
                let (a, b) = (cast_slice::<_, $ty>(from_ref(&a)), cast_slice::<_, $ty>(from_ref(&b)));
                for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
                    *sum = sum.wrapping_add(a.wrapping_mul(b));
                }
                sum
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn is_finite(self) -> bool {
                true
            }
        }
    };
}

wrapping_number!(i32, i32s, splat_i32s);
wrapping_number!(i64, i64s, splat_i64s);
