//! Random choices from a seed (xorshift generator).

pub struct Random(u64);

impl Random {
    pub fn new(seed: u32) -> Random {
        Random((u64::from(seed) << 1 | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `bound`; 0 for 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound.max(1)
    }

    pub fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    /// Returns an index into a list; `None` for an empty list.
    pub fn place<T>(&mut self, list: &[T]) -> Option<usize> {
        (!list.is_empty()).then(|| self.below(list.len()))
    }

    /// Returns another number: near `before`, small, or at the boundary of a bit width.
    pub fn number(&mut self, before: u64) -> u64 {
        match self.below(8) {
            0 => before.wrapping_add(1),
            1 => before.wrapping_sub(1),
            2 => before ^ 1,
            3 | 4 => self.below(48) as u64,
            5 => 0,
            6 => 1 << self.below(64),
            _ => u64::MAX >> self.below(64),
        }
    }
}
