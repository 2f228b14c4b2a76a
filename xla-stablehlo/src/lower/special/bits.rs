//! Functions of a float's bit pattern.

use xla_hlo::ElementType;

use super::formula::Term;

/// Returns the next float after `from` in the direction of `to`: `to` if they are equal, NaN if either is NaN.
pub(super) fn next_after<'t>([from, to]: [Term<'t>; 2]) -> Term<'t> {
    let ty = from.element_type();
    let unsigned = match ty.bit_width() {
        8 => ElementType::U8,
        16 => ElementType::U16,
        32 => ElementType::U32,
        _ => ElementType::U64,
    };
    let (bits, target) = (from.bitcast(unsigned), to.bitcast(unsigned));
    let sign = bits.constant((1u64 << (ty.bit_width() - 1)) as f64);
    let (from_sign, to_sign) = (bits.and(sign), target.and(sign));
    let (magnitude, to_magnitude) = (bits.and(sign.not()), target.and(sign.not()));
    // Bit patterns of equal sign are ordered by magnitude.
    let shrinks = magnitude.is_greater(to_magnitude).or(from_sign.differs(to_sign));
    let step = shrinks.select(bits - 1.0, bits + 1.0);
    let off_zero = magnitude.equals(0.0).select(to_sign.or(bits.constant(1.0)), step);
    let next = from.equals(to).select(target, off_zero).bitcast(ty);
    from.differs(from).or(to.differs(to)).select(f64::NAN, next)
}
