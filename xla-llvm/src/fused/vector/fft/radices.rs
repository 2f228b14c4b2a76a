//! Radices of the passes of a transform, chosen by cost.

use std::collections::BTreeMap;

use super::butterfly::split;
use super::code::Along;
use crate::fused::tuning::fft::{MAX_COMPOSITE, MAX_PRIME};

/// Vectors of a target, and their direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vectors {
    /// Number of lanes of a register.
    pub width: u32,
    pub registers: u32,
    pub along: Along,
}

/// Radices of the cheapest passes for a length, in order, with their cost in vector instructions for a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Radices {
    pub radices: Vec<usize>,
    pub cost: f64,
}

/// Whether a length has passes: all prime factors are at most [`MAX_PRIME`].
pub fn is_smooth(n: usize) -> bool {
    let mut left = n;
    for p in 2..=MAX_PRIME {
        while left > 1 && left.is_multiple_of(p) {
            left /= p;
        }
    }
    left == 1
}

impl Radices {
    /// Returns the radices of a smooth length.
    pub fn new(n: usize, vectors: Vectors) -> Radices {
        if n <= 1 {
            return Radices { radices: vec![1], cost: 1.0 };
        }
        // Cheapest passes for the last `d` of the length, whose first pass comes after passes of `n / d`.
        let mut best: BTreeMap<usize, (usize, f64)> = BTreeMap::from([(1, (1, 0.0))]);
        for d in (2..=n).filter(|&d| n.is_multiple_of(d)) {
            let is_radix = |r: &usize| d.is_multiple_of(*r) && (*r <= MAX_COMPOSITE || split(*r).0 == 1);
            let cost = |r: usize| Some((r, vectors.pass(r, d / r, n / d) + best.get(&(d / r))?.1));
            let cheapest = (2..=MAX_PRIME.min(d)).filter(is_radix).filter_map(cost).min_by(|a, b| a.1.total_cmp(&b.1));
            cheapest.into_iter().for_each(|cheapest| _ = best.insert(d, cheapest));
        }
        let cost = best.get(&n).map_or(f64::INFINITY, |best| best.1);
        let (mut left, mut radices) = (n, Vec::new());
        while let Some(&(r, _)) = best.get(&left).filter(|_| left > 1) {
            radices.push(r);
            left /= r;
        }
        Radices { radices, cost }
    }

    /// Returns the cheapest smooth length for a convolution of at least `n` elements: a multiple of every vector.
    pub fn of_convolution(n: usize, vectors: Vectors) -> (usize, Radices) {
        let least = 16.max(vectors.width as usize);
        let most = n.next_power_of_two().max(least);
        let odd = [1, 3, 5, 7, 9, 15].into_iter().map(|odd| odd * (n.div_ceil(odd)).next_power_of_two());
        let lengths = odd.filter(|&length| length <= most && length.is_multiple_of(least)).chain([most]);
        let all = lengths.map(|length| (length, Radices::new(length, vectors)));
        all.min_by(|a, b| a.1.cost.total_cmp(&b.1.cost)).unwrap_or_else(|| (most, Radices::new(most, vectors)))
    }
}

impl Vectors {
    /// Returns the cost of the pass with radix `r` after passes of `s` in total, with `m` left.
    fn pass(self, r: usize, m: usize, s: usize) -> f64 {
        let fitting = |count: usize| 1 << (self.width as usize).min(count).ilog2();
        let own = butterfly(r) + (8 * r - 4) as f64 + 4.0 * (2.0 * r as f64 + 4.0 - f64::from(self.registers)).max(0.0);
        match self.along {
            Along::Columns => (m * s) as f64 * own,
            Along::Rows if s == 1 => {
                let width: usize = fitting(m);
                let moves = match width {
                    1 => 0,
                    _ if r.is_power_of_two() => 3 * r * r.ilog2() as usize,
                    _ => 4 * r * width,
                };
                m.div_ceil(width) as f64 * (own + moves as f64)
            }
            Along::Rows => (m * s.div_ceil(fitting(s))) as f64 * own,
        }
    }
}

/// Returns the number of arithmetic instructions of a butterfly.
fn butterfly(n: usize) -> f64 {
    match n {
        0 | 1 => 0.0,
        2 => 4.0,
        4 => 16.0,
        _ => match split(n) {
            (1, _) => {
                let half = (n / 2) as f64;
                10.0 * half + 4.0 * half * half
            }
            (a, b) => a as f64 * butterfly(b) + b as f64 * butterfly(a) + 4.0 * ((a - 1) * (b - 1)) as f64,
        },
    }
}
