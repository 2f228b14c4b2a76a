//! Pseudorandom numbers from a seed.

/// Generator of pseudorandom numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    state: u64,
    /// Whether the generator always returns 0 (seed 0).
    is_still: bool,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, is_still: seed == 0 }
    }

    /// Returns a number below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        if self.is_still || end < 2 {
            return 0;
        }
        // Marsaglia's xorshift.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) as usize % end
    }
}
