//! Sort keys packed with the index of their element into one integer.

/// Integer with the key in the upper bits and the index below: of equal keys, the lower index is less.
pub(super) trait KeyedPlace: Copy + Ord + Send + Sync {
    fn new(key: u64, place: usize) -> Self;
    fn key(self) -> u64;
    fn place(self) -> usize;
}

/// Packs keys and indices of 32 bits.
impl KeyedPlace for u64 {
    #[inline(always)]
    fn new(key: u64, place: usize) -> u64 {
        key << 32 | place as u64
    }

    #[inline(always)]
    fn key(self) -> u64 {
        self >> 32
    }

    #[inline(always)]
    fn place(self) -> usize {
        self as u32 as usize
    }
}

impl KeyedPlace for u128 {
    fn new(key: u64, place: usize) -> u128 {
        u128::from(key) << 64 | place as u128
    }

    fn key(self) -> u64 {
        (self >> 64) as u64
    }

    fn place(self) -> usize {
        self as u64 as usize
    }
}
