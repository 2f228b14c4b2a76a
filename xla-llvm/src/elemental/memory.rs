//! Elements in memory: one after the other, unpacked, little-endian.

use inkwell::module::Linkage;
use inkwell::values::PointerValue;
use xla_hlo::{ElementKind, ElementType, Result, Scalar as Element};

use super::narrow_float;
use super::value::{Value, lane_scalar};
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// What an element (or a part of a complex one) is in memory.
fn stored_scalar(ty: ElementType) -> Scalar {
    match ty {
        ElementType::F16 => Scalar::F16,
        ElementType::F32 | ElementType::C64 => Scalar::F32,
        ElementType::F64 | ElementType::C128 => Scalar::F64,
        other => Scalar::Int(other.byte_width() as u32 * 8),
    }
}

/// What was loaded, as the lanes that are computed with.
fn from_stored<'e, 'ctx>(ty: ElementType, stored: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
    let lanes = match ty.kind() {
        ElementKind::Pred => stored.ne(0),
        ElementKind::Signed if ty.bit_width() < 8 => {
            let unused = 8 - ty.bit_width() as i64;
            (stored << unused).ashr(unused)
        }
        ElementKind::Unsigned if ty.bit_width() < 8 => stored & ((1 << ty.bit_width()) - 1),
        ElementKind::Float => narrow_float::decode(ty, stored),
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Complex => stored,
    };
    Value::new(ty, lanes)
}

/// Lanes as they are stored.
fn to_stored<'e, 'ctx>(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match ty.kind() {
        ElementKind::Pred => lanes.zext(8),
        ElementKind::Float => narrow_float::encode(ty, lanes),
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Complex => lanes,
    }
}

/// `width` elements from element `at` on; lanes outside of the mask are not read, and zero.
pub fn load<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    base: PointerValue<'ctx>,
    at: Lanes<'e, 'ctx>,
    ty: ElementType,
    width: u32,
    mask: Option<Lanes<'e, 'ctx>>,
) -> Value<'e, 'ctx> {
    if ty.is_complex() {
        let indices = consecutive(emitter, at, width);
        return gather(emitter, base, indices, ty, mask);
    }
    from_stored(ty, emitter.load_lanes(base, at, stored_scalar(ty), width, mask))
}

/// The elements at `indices`, one a lane; lanes outside of the mask are not read, and zero.
pub fn gather<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    base: PointerValue<'ctx>,
    indices: Lanes<'e, 'ctx>,
    ty: ElementType,
    mask: Option<Lanes<'e, 'ctx>>,
) -> Value<'e, 'ctx> {
    let scalar = stored_scalar(ty);
    if ty.is_complex() {
        let real = indices * 2;
        return Value::complex(
            ty,
            emitter.gather_lanes(base, real, scalar, mask),
            emitter.gather_lanes(base, real + 1, scalar, mask),
        );
    }
    from_stored(ty, emitter.gather_lanes(base, indices, scalar, mask))
}

/// Stores lanes to consecutive elements from element `at` on; with a mask, only its lanes.
pub fn store<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    value: Value<'e, 'ctx>,
    base: PointerValue<'ctx>,
    at: Lanes<'e, 'ctx>,
    mask: Option<Lanes<'e, 'ctx>>,
) {
    if value.imaginary().is_some() {
        let indices = consecutive(emitter, at, value.width());
        return scatter(emitter, value, base, indices, mask);
    }
    emitter.store_lanes(to_stored(value.element_type(), value.lanes()), base, at, mask);
}

/// Stores each lane to the element at its index; with a mask, only its lanes.
pub fn scatter<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    value: Value<'e, 'ctx>,
    base: PointerValue<'ctx>,
    indices: Lanes<'e, 'ctx>,
    mask: Option<Lanes<'e, 'ctx>>,
) {
    match value.imaginary() {
        Some(imaginary) => {
            let real = indices * 2;
            emitter.scatter_lanes(value.lanes(), base, real, mask);
            emitter.scatter_lanes(imaginary, base, real + 1, mask);
        }
        None => emitter.scatter_lanes(to_stored(value.element_type(), value.lanes()), base, indices, mask),
    }
}

fn consecutive<'e, 'ctx>(emitter: &'e Emitter<'ctx>, at: Lanes<'e, 'ctx>, width: u32) -> Lanes<'e, 'ctx> {
    if width == 1 { at } else { at.splat(width) + emitter.lane_numbers(64, width) }
}

/// A constant element in one lane, rounded to its type.
pub fn constant<'e, 'ctx>(emitter: &'e Emitter<'ctx>, ty: ElementType, element: Element) -> Value<'e, 'ctx> {
    let scalar = lane_scalar(ty);
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

/// Bytes as a constant of the module; its address.
pub fn constant_bytes<'ctx>(emitter: &Emitter<'ctx>, bytes: &[u8]) -> Result<PointerValue<'ctx>> {
    let data = emitter.context().const_string(bytes, false);
    let global = emitter.module().add_global(data.get_type(), None, "constant");
    global.set_initializer(&data);
    global.set_constant(true);
    global.set_linkage(Linkage::Private);
    global.set_alignment(64);
    Ok(global.as_pointer_value())
}
