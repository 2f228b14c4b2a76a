//! Elements in device memory, as pairs of doubles that represent every element type exactly.

use half::{bf16, f16};
use simulated_gpu::code::round::odd_single;
use simulated_gpu::finding::Problem;
use simulated_gpu::machine::Memory;

/// Element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    F8E4M3,
    F8E5M2,
    F16,
    Bf16,
    F32,
    F64,
    S8,
    S32,
    C64,
    C128,
}

/// Number: real and imaginary part.
pub(crate) type Number = (f64, f64);

impl Element {
    /// Returns the size of an element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Element::F8E4M3 | Element::F8E5M2 | Element::S8 => 1,
            Element::F16 | Element::Bf16 => 2,
            Element::F32 | Element::S32 => 4,
            Element::F64 | Element::C64 => 8,
            Element::C128 => 16,
        }
    }

    /// Whether the type is complex.
    pub fn is_complex(self) -> bool {
        matches!(self, Element::C64 | Element::C128)
    }

    /// Decodes an element.
    pub fn decode(self, bytes: &[u8]) -> Number {
        let real = match self {
            Element::F8E4M3 => e4m3(bytes[0]),
            // The format is the upper half of an f16.
            Element::F8E5M2 => f16::from_bits(u16::from(bytes[0]) << 8).to_f64(),
            Element::S8 => f64::from(bytes[0] as i8),
            Element::F16 => f16::from_le_bytes(array(bytes)).to_f64(),
            Element::Bf16 => bf16::from_le_bytes(array(bytes)).to_f64(),
            Element::F32 => f64::from(f32::from_le_bytes(array(bytes))),
            Element::S32 => f64::from(i32::from_le_bytes(array(bytes))),
            Element::F64 => f64::from_le_bytes(array(bytes)),
            Element::C64 => return (Element::F32.decode(&bytes[..4]).0, Element::F32.decode(&bytes[4..]).0),
            Element::C128 => return (Element::F64.decode(&bytes[..8]).0, Element::F64.decode(&bytes[8..]).0),
        };
        (real, 0.0)
    }

    /// Appends the bytes of the nearest element; `None` for types that are never results.
    pub fn encode(self, (real, imaginary): Number, bytes: &mut Vec<u8>) -> Option<()> {
        match self {
            Element::F16 => bytes.extend(f16::from_f32(odd_single(real)).to_le_bytes()),
            Element::Bf16 => bytes.extend(bf16::from_f32(odd_single(real)).to_le_bytes()),
            Element::F32 => bytes.extend((real as f32).to_le_bytes()),
            // Integer sums wrap around.
            Element::S32 => bytes.extend((real as i64 as i32).to_le_bytes()),
            Element::F64 => bytes.extend(real.to_le_bytes()),
            Element::C64 => [real, imaginary].iter().for_each(|part| bytes.extend((*part as f32).to_le_bytes())),
            Element::C128 => [real, imaginary].iter().for_each(|part| bytes.extend(part.to_le_bytes())),
            Element::F8E4M3 | Element::F8E5M2 | Element::S8 => return None,
        }
        Some(())
    }

    /// Reads consecutive elements, all of which must be initialised.
    pub fn read(self, memory: &mut Memory, address: u64, count: usize) -> Result<Vec<Number>, Problem> {
        let size = self.bytes();
        let bytes = memory.read(address, count.saturating_mul(size))?;
        Ok(bytes.chunks_exact(size).map(|element| self.decode(element)).collect())
    }

    /// Writes consecutive elements.
    pub fn write(self, memory: &mut Memory, address: u64, numbers: &[Number]) -> Result<(), Problem> {
        let mut bytes = Vec::with_capacity(numbers.len() * self.bytes());
        for &number in numbers {
            // The rules exclude results of types that cannot be encoded.
            let _ = self.encode(number, &mut bytes);
        }
        memory.write(address, &bytes)
    }
}

/// Converts a slice to an array of its length.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut found = [0; N];
    found.copy_from_slice(bytes);
    found
}

/// Decodes an F8E4M3FN: four bits of exponent with bias 7, three of fraction, no infinities.
fn e4m3(bits: u8) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
    let size = match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => fraction * 2f64.powi(-9),
        _ => (8.0 + fraction) * 2f64.powi(exponent - 10),
    };
    if bits & 0x80 == 0 { size } else { -size }
}

/// Rounds to the nearest TF32: ten bits of fraction, the exponent range of f32.
pub(crate) fn tf32((real, imaginary): Number) -> Number {
    let round = |part: f64| {
        let bits = (part as f32).to_bits();
        let is_finite = part.is_finite();
        let half = (1 << 12) - 1 + (bits >> 13 & 1);
        if is_finite { f64::from(f32::from_bits(bits.wrapping_add(half) & !((1 << 13) - 1))) } else { part }
    };
    (round(real), round(imaginary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_numbers() {
        assert_eq!(Element::F8E4M3.decode(&[0x7e]).0, 448.0);
        assert_eq!(Element::F8E4M3.decode(&[0x01]).0, 2f64.powi(-9));
        assert_eq!(Element::F8E4M3.decode(&[0xb8]).0, -1.0);
        assert!(Element::F8E4M3.decode(&[0xff]).0.is_nan());
        assert_eq!(Element::F8E5M2.decode(&[0x3e]).0, 1.5);
        assert_eq!(Element::F8E5M2.decode(&[0xfc]).0, f64::NEG_INFINITY);
        assert_eq!(Element::S8.decode(&[0x80]).0, -128.0);
        for element in [Element::F16, Element::Bf16, Element::F32, Element::F64, Element::S32] {
            let mut bytes = Vec::new();
            element.encode((-3.0, 0.0), &mut bytes).unwrap();
            assert_eq!((bytes.len(), element.decode(&bytes)), (element.bytes(), (-3.0, 0.0)));
        }
        for element in [Element::C64, Element::C128] {
            let mut bytes = Vec::new();
            element.encode((0.5, -2.0), &mut bytes).unwrap();
            assert_eq!((bytes.len(), element.decode(&bytes)), (element.bytes(), (0.5, -2.0)));
        }
    }

    #[test]
    fn integers_wrap_and_floats_are_rounded_once() {
        let mut bytes = Vec::new();
        Element::S32.encode((2_147_483_648.0, 0.0), &mut bytes).unwrap();
        assert_eq!(Element::S32.decode(&bytes).0, -2_147_483_648.0);
        bytes.clear();
        // Rounding through f32 would give 1.
        Element::F16.encode((1.0 + 2f64.powi(-11) + 2f64.powi(-40), 0.0), &mut bytes).unwrap();
        assert_eq!(Element::F16.decode(&bytes).0, 1.0 + 2f64.powi(-10));
        assert_eq!(tf32((1.0 + 2f64.powi(-11), 3.0)), (1.0, 3.0));
        assert_eq!(tf32((1.0 + 3.0 * 2f64.powi(-11), 0.0)).0, 1.0 + 2f64.powi(-9));
        assert_eq!(tf32((f64::INFINITY, 0.0)).0, f64::INFINITY);
    }
}
