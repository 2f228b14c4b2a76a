//! Sort keys: maps elements to integers whose order is the sort order.

use xla_passes::analysis::element_order::{Form, Key, SpecialValues};

use crate::lanes::Lanes;

/// Emits the keys of elements, given their bits.
pub(crate) fn key_lanes<'e, 'ctx>(key: &Key, bits: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let width = bits.scalar().bits();
    // Constants of the lanes' type are passed sign-extended.
    let constant = |number: u64| (number << (64 - width)).cast_signed() >> (64 - width);
    let (mask, flip) = (constant(key.mask()), constant(key.flip));
    let pattern = if key.bits < width { bits & mask } else { bits };
    let Form::Float(SpecialValues { zero_limit, zero, nan_limit, nan }) = key.form else {
        return if flip == 0 { pattern } else { pattern ^ flip };
    };
    let sign = constant(1 << (key.bits - 1));
    let magnitude = pattern & constant(key.mask() >> 1);
    let pattern = match zero_limit {
        0 => pattern,
        limit => magnitude.ult(constant(limit)).select(pattern.int(constant(zero)), pattern),
    };
    let pattern = match nan_limit {
        u64::MAX => pattern,
        limit => magnitude.ugt(constant(limit)).select(pattern.int(constant(nan)), pattern),
    };
    // Inverts negative numbers, and the sign bit of the others.
    let inverted = match key.bits == width {
        true => pattern.ashr(i64::from(width) - 1) | sign,
        false => (pattern & sign).ne(0).select(pattern.int(mask), sign),
    };
    if flip == 0 { pattern ^ inverted } else { pattern ^ inverted ^ flip }
}
