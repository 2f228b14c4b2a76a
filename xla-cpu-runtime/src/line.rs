//! Evenly spaced elements of a buffer, reached by checked numbers.
#![expect(unsafe_code, reason = "elements lie in raw buffers of generated code")]

/// The bits of an element, by its width in bytes.
pub(super) trait Bits: Copy + Ord + Send + Sync + 'static {
    /// The lower 64 of them.
    fn low(self) -> u64;

    /// The lower bits of a number.
    fn of(low: u64) -> Self;

    /// Sign and magnitude as an integer of the same order, where `float` has all bits set, or the bits themselves,
    /// where it has none; then those of `flip` inverted. It takes few instructions, and those on vectors.
    fn ordered(self, float: Self, flip: Self) -> Self;
}

macro_rules! bits {
    ($($ty:ty: $signed:ty;)*) => {
        $(impl Bits for $ty {
            #[inline(always)]
            #[allow(clippy::unnecessary_cast, reason = "of one type it is none")]
            fn low(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            #[allow(clippy::unnecessary_cast, reason = "of one type it is none")]
            fn of(low: u64) -> $ty {
                low as $ty
            }

            #[inline(always)]
            fn ordered(self, float: $ty, flip: $ty) -> $ty {
                let last = <$ty>::BITS - 1;
                let negative = (self as $signed >> last) as $ty;
                self ^ ((negative | 1 << last) & float) ^ flip
            }
        })*
    };
}

bits! {
    u8: i8;
    u16: i16;
    u32: i32;
    u64: i64;
    u128: i128;
}

/// Elements of one width at equal distances.
#[derive(Clone, Copy)]
pub(super) struct Line {
    first: *mut u8,
    /// Bytes from one element to the next.
    step: usize,
    count: usize,
    width: usize,
}

// SAFETY: whoever makes a line promises that what its users do on several threads does not collide.
unsafe impl Send for Line {}
// SAFETY: as above.
unsafe impl Sync for Line {}

impl Line {
    /// `count` elements of `width` bytes, `step` elements from each other.
    ///
    /// # Safety
    /// They lie in one buffer that lives as long as copies of this are used. No element that one thread writes through
    /// this or otherwise is used by another one meanwhile.
    pub(super) unsafe fn new(first: *mut u8, width: usize, step: usize, count: usize) -> Line {
        Line { first, step: step * width, count, width }
    }

    /// The address of element `i`.
    #[inline(always)]
    pub(super) fn address(&self, i: usize) -> *mut u8 {
        assert!(i < self.count, "element {i} of {}", self.count);
        // SAFETY: the element lies in the buffer, as the maker of the line promised.
        unsafe { self.first.add(i * self.step) }
    }

    /// Element `i`, of that width.
    #[inline(always)]
    pub(super) fn read<T: Bits>(&self, i: usize) -> T {
        assert!(size_of::<T>() == self.width, "elements of another width");
        // SAFETY: the address is that of an element of this width, which nobody writes meanwhile.
        unsafe { self.address(i).cast::<T>().read_unaligned() }
    }

    /// The `N` elements from `i` on, of that width, of a line without gaps.
    #[inline(always)]
    pub(super) fn read_block<T: Bits, const N: usize>(&self, i: usize) -> [T; N] {
        assert!(size_of::<T>() == self.width && self.step == self.width, "elements of another width, or with gaps");
        assert!(i <= self.count && N <= self.count - i, "elements {i} to {i} + {N} of {}", self.count);
        // SAFETY: these are elements of this width beside each other, which nobody writes meanwhile.
        unsafe { self.first.add(i * self.step).cast::<[T; N]>().read_unaligned() }
    }

    /// Makes element `i`, of that width, another one.
    #[inline(always)]
    pub(super) fn write<T: Bits>(&self, i: usize, bits: T) {
        assert!(size_of::<T>() == self.width, "elements of another width");
        // SAFETY: the address is that of an element of this width, which nobody else uses meanwhile.
        unsafe { self.address(i).cast::<T>().write_unaligned(bits) }
    }
}
