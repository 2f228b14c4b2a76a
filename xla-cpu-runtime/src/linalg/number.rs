//! Element types of matrices.

use gemm::{c32, c64};
use num_complex::{Complex, ComplexFloat};

/// Real or complex number in single or double precision.
pub(super) trait Number: ComplexFloat + Send + Sync + 'static {
    /// Returns a NaN.
    fn nan() -> Self;

    /// Returns the square root of the real part if that is positive.
    fn positive_root(self) -> Option<Self>;

    /// Returns `self / divisor`, without intermediate overflow.
    fn over(self, divisor: Self) -> Self;
}

macro_rules! numbers {
    ($($real:ty, $complex:ty;)*) => {
        $(impl Number for $real {
            fn nan() -> $real {
                <$real>::NAN
            }

            fn positive_root(self) -> Option<$real> {
                (self > 0.0).then(|| self.sqrt())
            }

            fn over(self, divisor: $real) -> $real {
                self / divisor
            }
        }

        impl Number for $complex {
            fn nan() -> $complex {
                Complex::new(<$real>::NAN, <$real>::NAN)
            }

            fn positive_root(self) -> Option<$complex> {
                (self.re > 0.0).then(|| Complex::new(self.re.sqrt(), 0.0))
            }

            /// Divides after scaling by the greater part of the divisor (R. Smith, 1962).
            fn over(self, divisor: $complex) -> $complex {
                let (a, b, c, d) = (self.re, self.im, divisor.re, divisor.im);
                if c.abs() >= d.abs() {
                    let ratio = if c == 0.0 { 0.0 } else { d / c };
                    let length = c + d * ratio;
                    Complex::new((a + b * ratio) / length, (b - a * ratio) / length)
                } else {
                    let ratio = c / d;
                    let length = c * ratio + d;
                    Complex::new((a * ratio + b) / length, (b * ratio - a) / length)
                }
            }
        })*
    };
}

numbers! {
    f32, c32;
    f64, c64;
}
