//! Radices: the factors of a length, one per stage of a transform.

use std::collections::BTreeMap;

/// Maximum length of an expanded line. Each stage has a table with one root per element.
pub(super) const MAX_LENGTH: usize = 1 << 16;

/// Maximum radix that is computed by one matrix product. Larger primes are computed as convolutions.
pub const MAX_DIRECT: usize = 256;

/// Maximum composite radix. Larger ones never cost less than stages of their factors.
pub const MAX_COMPOSITE: usize = 64;

/// Cost of a stage per element without its product, in units of a radix: memory traffic and twiddle factors. Fitted so
/// that costs are ordered like times measured on x86-64, for 32 to 4,096 elements and 1 to 1,000 lines.
const STAGE: f64 = 9.0;

/// Fixed cost of a stage: kernel calls and loops.
const CALLS: f64 = 1000.0;

/// Returns the radices of the cheapest stages for `count` lines of `n` elements, largest first. Their product is `n`.
pub fn radices(n: usize, count: usize) -> Vec<usize> {
    let fixed = STAGE + CALLS / (n as f64 * count.max(1) as f64);
    let divisors = (1..=n).filter(|&d| n.is_multiple_of(d));
    // Last radix and total cost of the cheapest stages for each divisor, smaller divisors first.
    let mut best: BTreeMap<usize, (usize, f64)> = BTreeMap::from([(1, (1, 0.0))]);
    for d in divisors.skip(1) {
        let is_radix = |r: usize| d.is_multiple_of(r) && (r <= MAX_COMPOSITE || is_prime(r));
        let cost = |r: usize| Some((r, r as f64 + fixed + best.get(&(d / r))?.1));
        let cheapest = best.keys().copied().filter(|&r| r > 1).chain([d]).filter(|&r| is_radix(r)).filter_map(cost);
        if let Some(cheapest) = cheapest.min_by(|a, b| a.1.total_cmp(&b.1)) {
            best.insert(d, cheapest);
        }
    }
    let (mut left, mut radices) = (n, Vec::new());
    while let Some(&(r, _)) = best.get(&left).filter(|_| left > 1) {
        radices.push(r);
        left /= r;
    }
    radices.sort_unstable_by(|a, b| b.cmp(a));
    radices
}

fn is_prime(n: usize) -> bool {
    n > 1 && (2..).take_while(|p| p * p <= n).all(|p| !n.is_multiple_of(p))
}

/// Returns the length of the transforms for a convolution of at least `n` elements: a power of two.
pub(super) fn smooth_length(n: usize) -> usize {
    n.next_power_of_two()
}
