//! Elements in memory: contiguous, unpacked, in the target's byte order.

use std::borrow::Cow;

use inkwell::module::Linkage;
use inkwell::values::PointerValue;
use xla_hlo::{ElementType, Literal, Result, Scalar as Element};

use super::scalar::{computed_scalar, stored_scalar};
use super::value::Value;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// Loads `width` elements from element `at` on; lanes outside of the mask are not read, and are zero.
pub fn load<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    base: PointerValue<'ctx>,
    at: Lanes<'e, 'ctx>,
    ty: ElementType,
    width: u32,
    mask: Option<Lanes<'e, 'ctx>>,
) -> Value<'e, 'ctx> {
    let scalar = stored_scalar(ty);
    if !ty.is_complex() {
        return Value::stored(ty, emitter.load_lanes(base, at, scalar, width, mask));
    }
    let mask = mask.map(|mask| mask.interleave(mask));
    let [real, imaginary] = emitter.load_lanes(base, at + at, scalar, 2 * width, mask).deinterleave();
    Value::complex(ty, real, imaginary)
}

/// Loads `width` elements without a mask; `at` must be a multiple of `width`. See [`load`].
pub fn load_aligned<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    base: PointerValue<'ctx>,
    at: Lanes<'e, 'ctx>,
    ty: ElementType,
    width: u32,
) -> Value<'e, 'ctx> {
    let scalar = stored_scalar(ty);
    if !ty.is_complex() {
        return Value::stored(ty, emitter.load_aligned_lanes(base, at, scalar, width));
    }
    let [real, imaginary] = emitter.load_aligned_lanes(base, at + at, scalar, 2 * width).deinterleave();
    Value::complex(ty, real, imaginary)
}

/// Loads the elements at `indices`, one per lane; lanes outside of the mask are not read, and are zero.
pub fn gather<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    base: PointerValue<'ctx>,
    indices: Lanes<'e, 'ctx>,
    ty: ElementType,
    mask: Option<Lanes<'e, 'ctx>>,
) -> Value<'e, 'ctx> {
    let scalar = stored_scalar(ty);
    if !ty.is_complex() {
        return Value::stored(ty, emitter.gather_lanes(base, indices, scalar, mask));
    }
    let real = indices + indices;
    let part = |index| emitter.gather_lanes(base, index, scalar, mask);
    Value::complex(ty, part(real), part(real + 1))
}

/// Stores lanes to consecutive elements from element `at` on; with a mask, only its lanes.
pub fn store<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    value: Value<'e, 'ctx>,
    base: PointerValue<'ctx>,
    at: Lanes<'e, 'ctx>,
    mask: Option<Lanes<'e, 'ctx>>,
) {
    match value.imaginary() {
        None => emitter.store_lanes(value.stored_lanes(), base, at, mask),
        Some(imaginary) => {
            let both = value.lanes().interleave(imaginary);
            emitter.store_lanes(both, base, at + at, mask.map(|mask| mask.interleave(mask)));
        }
    }
}

/// Stores lanes without a mask; `at` must be a multiple of the value's width. See [`store`].
pub fn store_aligned<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    value: Value<'e, 'ctx>,
    base: PointerValue<'ctx>,
    at: Lanes<'e, 'ctx>,
) {
    match value.imaginary() {
        None => emitter.store_aligned_lanes(value.stored_lanes(), base, at),
        Some(imaginary) => emitter.store_aligned_lanes(value.lanes().interleave(imaginary), base, at + at),
    }
}

/// Stores each lane to the element at its index; with a mask, only its lanes. If indices are equal, the last lane wins.
pub fn scatter<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    value: Value<'e, 'ctx>,
    base: PointerValue<'ctx>,
    indices: Lanes<'e, 'ctx>,
    mask: Option<Lanes<'e, 'ctx>>,
) {
    match value.imaginary() {
        None => emitter.scatter_lanes(value.stored_lanes(), base, indices, mask),
        Some(imaginary) => {
            let real = indices + indices;
            emitter.scatter_lanes(value.lanes(), base, real, mask);
            emitter.scatter_lanes(imaginary, base, real + 1, mask);
        }
    }
}

/// Returns a constant element in one lane, rounded to its type.
pub fn constant<'e, 'ctx>(emitter: &'e Emitter<'ctx>, ty: ElementType, element: Element) -> Value<'e, 'ctx> {
    let scalar = computed_scalar(ty);
    let integer =
        |bits: u32, v: i64| emitter.splat_constant(emitter.int_type(bits).const_int(v as u64, true).into(), 1);
    let float = |v: f64| {
        let bits = if scalar == Scalar::F64 { v.to_bits() } else { u64::from((v as f32).to_bits()) };
        integer(scalar.bits(), bits as i64).cast_bits(scalar)
    };
    match element.rounded(ty) {
        Element::Pred(p) => Value::new(ty, integer(1, i64::from(p))),
        Element::Signed(v) => Value::new(ty, integer(scalar.bits(), v)),
        Element::Unsigned(v) => Value::new(ty, integer(scalar.bits(), v as i64)),
        Element::Float(v) => Value::new(ty, float(v)),
        Element::Complex(re, im) => Value::complex(ty, float(re), float(im)),
    }
}

/// Adds a literal array to the module as a constant, in the target's byte order, and returns its address. Arrays with
/// the same bytes share one constant.
pub fn constant_array<'ctx>(emitter: &Emitter<'ctx>, literal: &Literal) -> Result<PointerValue<'ctx>> {
    let data = array_bytes(literal, emitter.target().is_big_endian());
    let data = emitter.context().const_string(&data, false);
    if let Some(&known) = emitter.arrays.borrow().get(&data) {
        return Ok(known);
    }
    let global = emitter.module().add_global(data.get_type(), None, "constant");
    global.set_initializer(&data);
    global.set_constant(true);
    global.set_linkage(Linkage::Private);
    global.set_alignment(64);
    emitter.arrays.borrow_mut().insert(data, global.as_pointer_value());
    Ok(global.as_pointer_value())
}

/// Returns the bytes of a literal array in the target's byte order.
pub fn array_bytes(literal: &Literal, big_endian: bool) -> Cow<'_, [u8]> {
    let number = literal.array_shape().element_type().real_part().byte_width();
    let bytes = literal.bytes();
    match big_endian && number > 1 {
        true => Cow::Owned(bytes.chunks(number).flat_map(|number| number.iter().rev()).copied().collect()),
        false => Cow::Borrowed(bytes),
    }
}
