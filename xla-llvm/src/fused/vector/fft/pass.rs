//! One pass of a transform: a Stockham stage (W. Cochran and others, 1967), which needs no reordering of elements.
//!
//! After passes that have combined groups of `s` of `n` elements, a pass with radix `r` and `m = n / (r s)` computes,
//! for `p` in `0..m` and `q` in `0..s`, the butterfly of the elements `q + s (p + m j)`, and stores its element `k`
//! times `exp(-2 pi i p k / (r m))` as element `q + s (r p + k)`.

use inkwell::values::PointerValue;
use xla_hlo::Result;
use xla_hlo::ops::Fft;

use super::code::{Along, Code, Rows};
use super::complex::Complex;
use crate::lanes::Lanes;

/// Pass with its table of twiddle factors.
#[derive(Clone, Copy)]
pub(super) struct Pass<'ctx> {
    r: u64,
    m: u64,
    s: u64,
    /// Twiddle factors except those for `k = 0`, which are 1. If lanes are along `p`, real parts `[k, p]`, then
    /// imaginary parts; otherwise real and imaginary parts `[p, k, 2]`.
    twiddles: Option<PointerValue<'ctx>>,
}

/// Arrays of a pass: two different ones.
#[derive(Clone, Copy)]
pub(super) struct Transfer<'a, 'e, 'ctx> {
    pub from: &'a Rows<'e, 'ctx>,
    pub to: &'a Rows<'e, 'ctx>,
    /// Divisor of the results.
    pub divisor: f64,
}

impl<'ctx> Pass<'ctx> {
    /// Creates the passes of a transform with the given radices, and their tables.
    pub fn all(code: &Code<'_, 'ctx>, radices: &[usize]) -> Result<Vec<Pass<'ctx>>> {
        let (mut left, mut s) = (radices.iter().product::<usize>() as u64, 1);
        let mut passes = Vec::new();
        for &r in radices {
            let r = r as u64;
            left /= r;
            let mut pass = Pass { r, m: left, s, twiddles: None };
            if left > 1 {
                pass.twiddles = Some(code.table(&pass.factors(pass.has_lanes_along_p(code)))?);
            }
            passes.push(pass);
            s *= r;
        }
        Ok(passes)
    }

    /// Whether lanes are consecutive values of `p`.
    fn has_lanes_along_p(&self, code: &Code<'_, 'ctx>) -> bool {
        code.along == Along::Rows && self.s == 1 && code.fitting(self.m) > 1
    }

    /// Returns the numbers of the table.
    fn factors(&self, lanes_along_p: bool) -> Vec<f64> {
        let (r, m) = (self.r as usize, self.m as usize);
        let root = |p: usize, k: usize| Fft::root(p * k, r * m);
        if !lanes_along_p {
            return (0..m).flat_map(|p| (1..r).map(move |k| root(p, k))).flat_map(|(re, im)| [re, im]).collect();
        }
        let roots: Vec<(f64, f64)> = (1..r).flat_map(|k| (0..m).map(move |p| root(p, k))).collect();
        roots.iter().map(|root| root.0).chain(roots.iter().map(|root| root.1)).collect()
    }

    /// Emits the pass.
    pub fn emit<'e>(&self, code: &Code<'e, 'ctx>, transfer: Transfer<'_, 'e, 'ctx>) {
        if self.has_lanes_along_p(code) {
            let width = code.fitting(self.m);
            return code.vectors(self.m, width, |p| self.along_p(code, transfer, p, width));
        }
        code.vectors(self.m, 1, |p| {
            let width = match code.along {
                Along::Rows => code.fitting(self.s),
                Along::Columns => code.width,
            };
            let step = if code.along == Along::Rows { width } else { 1 };
            let (first, target) = (p * self.s as i64, p * (self.s * self.r) as i64);
            code.vectors(self.s, step, |q| {
                let twiddle = |k: u64| {
                    let at = (p * (self.r - 1) as i64 + (k - 1) as i64) * 2;
                    let part = |table, at| code.e.load_lanes(table, at, code.scalar, 1, None).splat(width);
                    self.twiddles.map(|table| Complex { re: part(table, at), im: part(table, at + 1) })
                };
                let y = self.butterflies(code, transfer, (first + q, width), twiddle);
                for (k, y) in (0..).zip(y) {
                    code.store(transfer.to, target + q + (self.s * k) as i64, y);
                }
            });
        });
    }

    /// Emits the butterflies of `width` values of `p` from `first` on.
    fn along_p<'e>(&self, code: &Code<'e, 'ctx>, transfer: Transfer<'_, 'e, 'ctx>, first: Lanes<'e, 'ctx>, width: u32) {
        let twiddle = |k: u64| {
            let at = first + ((k - 1) * self.m) as i64;
            let part = |table, at| code.e.load_lanes(table, at, code.scalar, width, None);
            self.twiddles
                .map(|table| Complex { re: part(table, at), im: part(table, at + ((self.r - 1) * self.m) as i64) })
        };
        let y = self.butterflies(code, transfer, (first, width), twiddle);
        let target = first * self.r as i64;
        if self.r.is_power_of_two() {
            for (k, y) in (0..).zip(interleaved(y)) {
                code.store(transfer.to, target + i64::from(width) * k, y);
            }
        } else {
            let numbers = target.splat(width) + code.e.lane_numbers(64, width) * self.r as i64;
            for (k, y) in (0..).zip(y) {
                code.scatter(transfer.to, numbers + k, y);
            }
        }
    }

    /// Computes butterflies whose element 0 is in the rows from `first` on, with twiddle factors and divisor.
    fn butterflies<'e>(
        &self,
        code: &Code<'e, 'ctx>,
        transfer: Transfer<'_, 'e, 'ctx>,
        (first, width): (Lanes<'e, 'ctx>, u32),
        twiddle: impl Fn(u64) -> Option<Complex<'e, 'ctx>>,
    ) -> Vec<Complex<'e, 'ctx>> {
        let stride = self.m * self.s;
        let x: Vec<_> = (0..self.r).map(|j| code.load(transfer.from, first + (j * stride) as i64, width)).collect();
        let y = code.butterfly(&x);
        let factored = |(k, y): (u64, Complex<'e, 'ctx>)| {
            let factor = if k == 0 { None } else { twiddle(k) };
            code.divided(factor.map_or(y, |factor| code.product(y, factor)), transfer.divisor)
        };
        (0..).zip(y).map(factored).collect()
    }
}

/// Interleaves the lanes of a power of two of vectors: lane 0 of each, lane 1 of each, and so on.
fn interleaved<'e, 'ctx>(vectors: Vec<Complex<'e, 'ctx>>) -> Vec<Complex<'e, 'ctx>> {
    let halves = |x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>| {
        let width = x.width();
        [0, width / 2].map(|first| {
            let lanes = (first..first + width / 2).flat_map(|lane| [lane, width + lane]);
            x.shuffle(y, &lanes.collect::<Vec<_>>())
        })
    };
    let count = vectors.len();
    if count == 1 {
        return vectors;
    }
    let side = |first: usize| interleaved(vectors.iter().skip(first).step_by(2).copied().collect());
    let (even, odd) = (side(0), side(1));
    even.into_iter()
        .zip(odd)
        .flat_map(|(x, y)| {
            let ([re, next_re], [im, next_im]) = (halves(x.re, y.re), halves(x.im, y.im));
            [Complex { re, im }, Complex { re: next_re, im: next_im }]
        })
        .collect()
}
