//! High halves of products, for which vectors have no instruction.

use super::Lanes;

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Whether a product of twice the width is inline code.
    fn has_double_width(self) -> bool {
        self.scalar().bits() <= 32 || self.width() == 1 && self.emitter.target().abilities().high_product
    }

    /// Returns the high half of the unsigned product.
    pub fn multiply_high_unsigned(self, rhs: Self) -> Self {
        let bits = self.scalar().bits();
        if self.has_double_width() {
            return (self.zext(2 * bits) * rhs.zext(2 * bits)).lshr(i64::from(bits)).trunc(bits);
        }
        // Multiply by halves: 128-bit vector lanes would be split into scalars.
        let mask = 0xffff_ffff_i64;
        let ((a, b), (c, d)) = ((self.lshr(32), self & mask), (rhs.lshr(32), rhs & mask));
        let (high, middle, cross, low) = (a * c, a * d, b * c, b * d);
        let carry = low.lshr(32) + (middle & mask) + (cross & mask);
        high + middle.lshr(32) + cross.lshr(32) + carry.lshr(32)
    }

    /// Returns the high half of the signed product.
    pub fn multiply_high_signed(self, rhs: Self) -> Self {
        let bits = self.scalar().bits();
        if self.has_double_width() {
            return (self.sext(2 * bits) * rhs.sext(2 * bits)).lshr(i64::from(bits)).trunc(bits);
        }
        let top = i64::from(bits - 1);
        self.multiply_high_unsigned(rhs) - (self.ashr(top) & rhs) - (rhs.ashr(top) & self)
    }
}
