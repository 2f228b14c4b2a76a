//! Literals in protobuf: elements in the field of their type, in the order of the layout.

use super::messages::LiteralProto;
use super::numbers::required;
use super::shape;
use crate::{ArrayShape, ElementKind, ElementType, Error, Literal, Result, ResultExt, Scalar, Shape, strides};

/// Reads a literal.
pub(crate) fn read(proto: LiteralProto) -> Result<Literal> {
    let shape = shape::read(required("shape", proto.shape.as_ref())?).context(|| "shape")?;
    read_shaped(proto, &shape)
}

fn read_shaped(proto: LiteralProto, shape: &Shape) -> Result<Literal> {
    match shape {
        Shape::Array(array) => read_array(proto, array),
        Shape::Tuple(elements) if elements.len() == proto.tuple_literals.len() => {
            let pairs = proto.tuple_literals.into_iter().zip(elements);
            pairs.map(|(literal, shape)| read_shaped(literal, shape)).collect::<Result<_>>().map(Literal::tuple)
        }
        Shape::Tuple(elements) => {
            let (wanted, found) = (elements.len(), proto.tuple_literals.len());
            Err(Error::invalid_argument(format!("tuple_literals has {found} entries, the shape has {wanted}")))
        }
        Shape::Token => Ok(Literal::token()),
        Shape::Opaque | Shape::Buffer(_) => Err(Error::invalid_argument(format!("{shape} has no literal"))),
    }
}

fn read_array(proto: LiteralProto, shape: &ArrayShape) -> Result<Literal> {
    let ty = shape.element_type();
    let count = shape.checked_element_count()?;
    let bytes = elements(proto, ty);
    if bytes.len() != count * ty.byte_width() {
        let found = bytes.len() / ty.byte_width();
        let shape = shape.clone().with_layout(None);
        return Err(Error::invalid_argument(format!("{shape} has {count} elements, the field for {ty} has {found}")));
    }
    Literal::from_bytes(shape, reordered(bytes, shape, Direction::FromLayout)).map(Literal::compact)
}

/// Returns the bytes of the field of a type.
fn elements(mut proto: LiteralProto, ty: ElementType) -> Vec<u8> {
    fn wide<T: Copy, const N: usize>(values: &[T], to_bytes: fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&v| to_bytes(v)).collect()
    }
    match ty {
        ElementType::Pred => proto.preds.iter().map(|&p| u8::from(p)).collect(),
        ElementType::S32 => wide(&proto.s32s, i32::to_le_bytes),
        ElementType::S64 => wide(&proto.s64s, i64::to_le_bytes),
        ElementType::U32 => wide(&proto.u32s, u32::to_le_bytes),
        ElementType::U64 => wide(&proto.u64s, u64::to_le_bytes),
        ElementType::F32 => wide(&proto.f32s, u32::to_le_bytes),
        ElementType::F64 => wide(&proto.f64s, u64::to_le_bytes),
        ElementType::C64 => wide(&proto.c64s, u32::to_le_bytes),
        ElementType::C128 => wide(&proto.c128s, u64::to_le_bytes),
        narrow => {
            let mut bytes = byte_field(&mut proto, narrow).map(std::mem::take).unwrap_or_default();
            if ty.bit_width() < 8 {
                bytes.iter_mut().for_each(|byte| Scalar::read(ty, &[*byte]).write(ty, std::slice::from_mut(byte)));
            }
            bytes
        }
    }
}

/// Returns the field of a type whose elements are stored as bytes; `None` for other types.
fn byte_field(proto: &mut LiteralProto, ty: ElementType) -> Option<&mut Vec<u8>> {
    Some(match ty {
        ElementType::S1 => &mut proto.s1s,
        ElementType::S2 => &mut proto.s2s,
        ElementType::S4 => &mut proto.s4s,
        ElementType::S8 => &mut proto.s8s,
        ElementType::S16 => &mut proto.s16s,
        ElementType::U1 => &mut proto.u1s,
        ElementType::U2 => &mut proto.u2s,
        ElementType::U4 => &mut proto.u4s,
        ElementType::U8 => &mut proto.u8s,
        ElementType::U16 => &mut proto.u16s,
        ElementType::F16 => &mut proto.f16s,
        ElementType::BF16 => &mut proto.bf16s,
        ElementType::F8E5M2 => &mut proto.f8e5m2s,
        ElementType::F8E4M3 => &mut proto.f8e4m3s,
        ElementType::F8E4M3FN => &mut proto.f8e4m3fns,
        ElementType::F8E4M3B11FNUZ => &mut proto.f8e4m3b11fnuzs,
        ElementType::F8E3M4 => &mut proto.f8e3m4s,
        ElementType::F8E5M2FNUZ => &mut proto.f8e5m2fnuzs,
        ElementType::F8E4M3FNUZ => &mut proto.f8e4m3fnuzs,
        ElementType::F8E8M0FNU => &mut proto.f8e8m0fnus,
        ElementType::F4E2M1FN => &mut proto.f4e2m1fns,
        ElementType::F6E3M2FN => &mut proto.f6e3m2fns,
        ElementType::F6E2M3FN => &mut proto.f6e2m3fns,
        ElementType::Pred
        | ElementType::S32
        | ElementType::S64
        | ElementType::U32
        | ElementType::U64
        | ElementType::F32
        | ElementType::F64
        | ElementType::C64
        | ElementType::C128 => return None,
    })
}

/// Writes a literal in the layouts of `shape`.
pub(crate) fn write(literal: &Literal, shape: &Shape) -> Result<LiteralProto> {
    let mut proto = LiteralProto { shape: Some(shape::write(shape)?), ..LiteralProto::default() };
    match shape {
        Shape::Array(array) => {
            let bytes = reordered(literal.bytes().to_vec(), array, Direction::ToLayout);
            set_elements(&mut proto, array.element_type(), bytes);
        }
        Shape::Tuple(shapes) => {
            let pairs = literal.elements().iter().zip(shapes);
            proto.tuple_literals = pairs.map(|(literal, shape)| write(literal, shape)).collect::<Result<_>>()?;
        }
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => {}
    }
    Ok(proto)
}

fn set_elements(proto: &mut LiteralProto, ty: ElementType, mut bytes: Vec<u8>) {
    fn wide<T, const N: usize>(bytes: &[u8], from_bytes: fn([u8; N]) -> T) -> Vec<T> {
        bytes.as_chunks::<N>().0.iter().map(|&chunk| from_bytes(chunk)).collect()
    }
    match ty {
        ElementType::Pred => proto.preds = bytes.iter().map(|&b| b != 0).collect(),
        ElementType::S32 => proto.s32s = wide(&bytes, i32::from_le_bytes),
        ElementType::S64 => proto.s64s = wide(&bytes, i64::from_le_bytes),
        ElementType::U32 => proto.u32s = wide(&bytes, u32::from_le_bytes),
        ElementType::U64 => proto.u64s = wide(&bytes, u64::from_le_bytes),
        ElementType::F32 => proto.f32s = wide(&bytes, u32::from_le_bytes),
        ElementType::F64 => proto.f64s = wide(&bytes, u64::from_le_bytes),
        ElementType::C64 => proto.c64s = wide(&bytes, u32::from_le_bytes),
        ElementType::C128 => proto.c128s = wide(&bytes, u64::from_le_bytes),
        narrow => {
            // In the message, signed elements narrower than a byte are not sign-extended.
            if narrow.kind() == ElementKind::Signed && narrow.bit_width() < 8 {
                bytes.iter_mut().for_each(|byte| *byte &= (1 << narrow.bit_width()) - 1);
            }
            if let Some(field) = byte_field(proto, narrow) {
                *field = bytes;
            }
        }
    }
}

/// Direction of a conversion between row-major order and the order of a layout.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    FromLayout,
    ToLayout,
}

/// Returns the elements of an array in the other order.
fn reordered(bytes: Vec<u8>, shape: &ArrayShape, direction: Direction) -> Vec<u8> {
    if shape.layout().is_none_or(|layout| layout.is_row_major()) || bytes.is_empty() {
        return bytes;
    }
    let width = shape.element_type().byte_width();
    let order = shape.minor_to_major();
    let steps = strides(shape.dims(), &(0..shape.rank()).rev().collect::<Vec<_>>());
    let mut out = vec![0; bytes.len()];
    // Iterate over the array in the order of the layout; `linear` is the row-major position of the same element.
    let mut index = vec![0; shape.rank()];
    let mut linear = 0;
    for physical in 0..bytes.len() / width {
        let (from, to) = match direction {
            Direction::FromLayout => (physical, linear),
            Direction::ToLayout => (linear, physical),
        };
        out[to * width..][..width].copy_from_slice(&bytes[from * width..][..width]);
        for &d in &order {
            index[d] += 1;
            linear += steps[d];
            if index[d] < shape.dims()[d] {
                break;
            }
            linear -= index[d] * steps[d];
            index[d] = 0;
        }
    }
    out
}
