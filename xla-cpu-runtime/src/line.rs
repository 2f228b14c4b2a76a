//! Evenly spaced elements of a buffer, accessed by checked indices.
#![expect(unsafe_code, reason = "elements lie in raw buffers of generated code")]

/// Bits of an element, by its width in bytes.
pub(super) trait Bits: Copy + Ord + Send + Sync + 'static {
    /// Returns the lower 64 bits.
    fn low(self) -> u64;

    /// Returns the lower bits of a number.
    fn of(low: u64) -> Self;

    /// Converts the bits of an element to an integer with the same order. `float` is a mask: all bits for
    /// sign-magnitude numbers, no bits for integers. The bits of `flip` are inverted afterwards. Takes few
    /// instructions, and they vectorize.
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

/// Elements of one width with a constant stride.
#[derive(Clone, Copy)]
pub(super) struct Line {
    first: *mut u8,
    /// Stride in bytes.
    step: usize,
    count: usize,
    width: usize,
}

// SAFETY: the creator of a line guarantees that its uses on several threads do not conflict.
unsafe impl Send for Line {}
// SAFETY: as above.
unsafe impl Sync for Line {}

impl Line {
    /// Creates a line of `count` elements of `width` bytes with a stride of `step` elements.
    ///
    /// # Safety
    /// The elements must be in one buffer that lives as long as copies of this line are used. No thread may access an
    /// element while another thread writes it, through this line or otherwise.
    pub(super) unsafe fn new(first: *mut u8, width: usize, step: usize, count: usize) -> Line {
        Line { first, step: step * width, count, width }
    }

    /// Returns the address of element `i`.
    #[inline(always)]
    pub(super) fn address(&self, i: usize) -> *mut u8 {
        assert!(i < self.count, "element {i} is out of bounds, the line has {}", self.count);
        // SAFETY: the element is in the buffer, as the creator of the line guaranteed.
        unsafe { self.first.add(i * self.step) }
    }

    /// Reads element `i`, of that width.
    #[inline(always)]
    pub(super) fn read<T: Bits>(&self, i: usize) -> T {
        assert!(size_of::<T>() == self.width, "the type has another width than the elements");
        // SAFETY: the address belongs to an element of this width, which no other thread writes at the same time.
        unsafe { self.address(i).cast::<T>().read_unaligned() }
    }

    /// Reads the `N` elements from `i` on, of that width, of a line without gaps.
    #[inline(always)]
    pub(super) fn read_block<T: Bits, const N: usize>(&self, i: usize) -> [T; N] {
        assert!(
            size_of::<T>() == self.width && self.step == self.width,
            "the type has another width than the elements, or they have gaps"
        );
        assert!(
            i <= self.count && N <= self.count - i,
            "elements {i} to {i} + {N} are out of bounds, the line has {}",
            self.count
        );
        // SAFETY: these are adjacent elements of this width, which no other thread writes at the same time.
        unsafe { self.first.add(i * self.step).cast::<[T; N]>().read_unaligned() }
    }

    /// Writes element `i`, of that width.
    #[inline(always)]
    pub(super) fn write<T: Bits>(&self, i: usize, bits: T) {
        assert!(size_of::<T>() == self.width, "the type has another width than the elements");
        // SAFETY: the address belongs to an element of this width, which no other thread accesses at the same time.
        unsafe { self.address(i).cast::<T>().write_unaligned(bits) }
    }
}
