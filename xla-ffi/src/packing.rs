//! Packing of elements of less than a byte, which handlers expect packed, with the first element in the lowest bits.

use xla_hlo::{ElementType, Shape};

/// Packs an array; `None` for tokens and for elements of whole bytes.
pub(crate) fn packed(shape: &Shape, bytes: &[u8]) -> Option<Vec<u8>> {
    let bits = bits(shape.as_array()?.element_type())?;
    let pack = |elements: &[u8]| {
        let parts = elements.iter().enumerate().map(|(i, element)| (element & mask(bits)) << (i * bits));
        parts.fold(0, |byte, part| byte | part)
    };
    Some(bytes.chunks(8 / bits).map(pack).collect())
}

/// Unpacks an array from a handler, to one element in each byte.
pub(crate) fn unpack(shape: &Shape, packed: &[u8], bytes: &mut [u8]) {
    let Some(ty) = shape.as_array().map(|array| array.element_type()) else { return };
    let Some(bits) = bits(ty) else { return };
    for (elements, byte) in bytes.chunks_mut(8 / bits).zip(packed) {
        for (i, element) in elements.iter_mut().enumerate() {
            let low = (byte >> (i * bits)) & mask(bits);
            // Sign-extend within the byte.
            let is_negative = ty.is_integer() && ty.is_signed() && low >> (bits - 1) == 1;
            *element = if is_negative { low | !mask(bits) } else { low };
        }
    }
}

/// Returns the number of bits of an element that is packed; `None` for other types.
fn bits(ty: ElementType) -> Option<usize> {
    (ty != ElementType::Pred && ty.bit_width() <= 4).then(|| ty.bit_width())
}

fn mask(bits: usize) -> u8 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_packed_from_the_lowest_bits_on() {
        let cases: [(ElementType, &[u8], &[u8]); 6] = [
            (ElementType::S4, &[0, 1, 0xf8, 0xff, 7], &[0x10, 0xf8, 0x07]),
            (ElementType::U4, &[15, 1, 8], &[0x1f, 0x08]),
            (ElementType::F4E2M1FN, &[15, 1, 8], &[0x1f, 0x08]),
            (ElementType::S2, &[0xfe, 0xff, 0, 1], &[0x4e]),
            (ElementType::U2, &[3, 0, 2, 1, 3], &[0x63, 0x03]),
            (ElementType::U1, &[1, 0, 1], &[0x05]),
        ];
        for (ty, elements, expected) in cases {
            let shape = Shape::array(ty, [elements.len()]);
            assert_eq!(packed(&shape, elements).unwrap(), expected, "{ty}");
            let mut back = vec![0x55; elements.len()];
            unpack(&shape, expected, &mut back);
            assert_eq!(back, elements, "{ty}");
        }
        assert_eq!(packed(&Shape::array(ElementType::Pred, [1]), &[1]), None);
        assert_eq!(packed(&Shape::Token, &[]), None);
    }
}
