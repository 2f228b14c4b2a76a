//! Small Fourier transforms in registers (butterflies).

use xla_hlo::ops::Fft;

use super::code::Code;
use super::complex::Complex;
use crate::lanes::{Lanes, Scalar};

impl<'e, 'ctx> Code<'e, 'ctx> {
    /// Lets the code generator fuse a product with a sum, if the options allow it.
    fn fusible(&self, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        if self.e.options().contract { x.contractable() } else { x }
    }

    /// Returns `x y + z`.
    fn multiply_add(&self, x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>, z: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        self.fusible(z + self.fusible(x * y))
    }

    /// Returns the product of complex numbers.
    pub fn product(&self, x: Complex<'e, 'ctx>, y: Complex<'e, 'ctx>) -> Complex<'e, 'ctx> {
        let minus = self.fusible(x.im * y.im);
        Complex {
            re: self.fusible(self.fusible(x.re * y.re) - minus),
            im: self.multiply_add(x.re, y.im, self.fusible(x.im * y.re)),
        }
    }

    /// Returns the quotient by a constant. With FMA, a product with the reciprocal in two parts is as accurate as a
    /// division.
    pub fn divided(&self, x: Complex<'e, 'ctx>, divisor: f64) -> Complex<'e, 'ctx> {
        if divisor == 1.0 {
            return x;
        }
        let is_double = self.scalar == Scalar::F64;
        let nearest = if is_double { 1.0 / divisor } else { f64::from((1.0 / divisor) as f32) };
        let rest = |high: f64| (-high).mul_add(divisor, 1.0) / divisor;
        // A negative second part would turn infinities into NaN.
        let high = match rest(nearest) < 0.0 {
            true if is_double => nearest.next_down(),
            true => f64::from((nearest as f32).next_down()),
            false => nearest,
        };
        let low = rest(high);
        let quotient = |x: Lanes<'e, 'ctx>| match low {
            0.0 => x * high,
            _ => self.multiply_add(x, x.constant(high), x * low),
        };
        Complex { re: quotient(x.re), im: quotient(x.im) }
    }

    /// Returns the product with `exp(-2 pi i j / n)`, without arithmetic if that is 1, -1, i or -i.
    fn turned(&self, x: Complex<'e, 'ctx>, j: usize, n: usize) -> Complex<'e, 'ctx> {
        match (4 * j).is_multiple_of(n).then(|| 4 * j / n % 4) {
            Some(0) => x,
            Some(1) => x.times_minus_i(),
            Some(2) => Complex { re: -x.re, im: -x.im },
            Some(_) => Complex { re: -x.im, im: x.re },
            None => {
                let (re, im) = Fft::root(j, n);
                self.product(x, Complex { re: x.re.constant(re), im: x.re.constant(im) })
            }
        }
    }

    /// Returns the forward transform of a few numbers. Composite lengths are split into `a` transforms of `b` numbers
    /// and `b` transforms of `a` numbers.
    pub fn butterfly(&self, x: &[Complex<'e, 'ctx>]) -> Vec<Complex<'e, 'ctx>> {
        let n = x.len();
        match (n, split(n)) {
            (2, _) => vec![x[0] + x[1], x[0] - x[1]],
            (_, (1, _)) => self.odd(x),
            (_, (a, b)) => {
                let column = |j: usize| -> Vec<_> {
                    let y = self.butterfly(&x.iter().skip(j).step_by(b).copied().collect::<Vec<_>>());
                    (0..).zip(y).map(|(k, y)| self.turned(y, j * k, n)).collect()
                };
                let columns: Vec<Vec<_>> = (0..b).map(column).collect();
                let row = |k: usize| self.butterfly(&columns.iter().map(|column| column[k]).collect::<Vec<_>>());
                let rows: Vec<Vec<_>> = (0..a).map(row).collect();
                (0..n).map(|k| rows[k % a][k / a]).collect()
            }
        }
    }

    /// Returns the transform of one number, or of an odd prime number of numbers. Sums and differences of `x[j]` and
    /// `x[n - j]` halve the products, since their roots are conjugate.
    fn odd(&self, x: &[Complex<'e, 'ctx>]) -> Vec<Complex<'e, 'ctx>> {
        let (n, half) = (x.len(), x.len() / 2);
        let pairs: Vec<_> = (1..=half).map(|j| (x[j] + x[n - j], x[j] - x[n - j])).collect();
        let mut y = vec![pairs.iter().fold(x[0], |sum, &(plus, _)| sum + plus); n];
        for k in 1..=half {
            let (mut even, mut odd) = (x[0], None);
            for (j, &(plus, minus)) in (1..).zip(&pairs) {
                let (cos, sin) = Fft::root(j * k, n);
                let (cos, sin) = (plus.re.constant(cos), plus.re.constant(sin));
                even = Complex {
                    re: self.multiply_add(plus.re, cos, even.re),
                    im: self.multiply_add(plus.im, cos, even.im),
                };
                odd = Some(match odd {
                    None => Complex { re: self.fusible(minus.im * sin), im: self.fusible(minus.re * sin) },
                    Some(Complex { re, im }) => {
                        Complex { re: self.multiply_add(minus.im, sin, re), im: self.multiply_add(minus.re, sin, im) }
                    }
                });
            }
            // The products of the differences with `i sin`.
            if let Some(odd) = odd {
                y[k] = Complex { re: even.re - odd.re, im: even.im + odd.im };
                y[n - k] = Complex { re: even.re + odd.re, im: even.im - odd.im };
            }
        }
        y
    }
}

/// Returns the factors of a butterfly. The first one is 1 if the length is prime.
pub(super) fn split(n: usize) -> (usize, usize) {
    let a = if n > 4 && n.is_multiple_of(4) { 4 } else { (2..n).find(|&a| n.is_multiple_of(a)).unwrap_or(1) };
    (a, n / a)
}
