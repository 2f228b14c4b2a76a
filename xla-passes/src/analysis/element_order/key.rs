//! Sort keys: unsigned integers in the order of the elements.

use xla_hlo::{ElementKind, ElementType};

/// Maps the bits of an element to an unsigned integer, so that integer order is element order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Width in bits of an element and of its key.
    pub bits: u32,
    /// Interpretation of the bits.
    pub form: Form,
    /// Bits that are inverted last; all of them for the reversed order.
    pub flip: u64,
}

/// Interpretation of an element's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The bits are the key.
    Integer,
    /// Sign and magnitude. Special values are replaced first.
    Float(SpecialValues),
}

/// Bit patterns of floats that are replaced by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialValues {
    /// Magnitudes below this become `zero`. 0 replaces none, and 1 only the two zeros.
    pub zero_limit: u64,
    /// Pattern that replaces zeros.
    pub zero: u64,
    /// Magnitudes above this become `nan`.
    pub nan_limit: u64,
    /// Pattern that replaces NaNs.
    pub nan: u64,
}

impl SpecialValues {
    /// No pattern is replaced.
    const NONE: SpecialValues = SpecialValues { zero_limit: 0, zero: 0, nan_limit: u64::MAX, nan: 0 };
}

impl Key {
    /// Number of integers in the encoding of a key.
    pub const NUMBERS: usize = 7;

    /// Returns the numeric order of integers, or the order of float bit patterns: -NaN < -inf < -0 < 0 < inf < NaN.
    /// `None` for complex numbers.
    pub fn total_order(ty: ElementType) -> Option<Key> {
        let bits = if ty == ElementType::Pred { 8 } else { ty.bit_width() as u32 };
        let (form, flip) = match ty.kind() {
            ElementKind::Pred | ElementKind::Unsigned => (Form::Integer, 0),
            ElementKind::Signed => (Form::Integer, 1 << (bits - 1)),
            ElementKind::Float if !ty.is_signed() => (Form::Integer, 0),
            ElementKind::Float => (Form::Float(SpecialValues::NONE), 0),
            ElementKind::Complex => return None,
        };
        Some(Key { bits, form, flip })
    }

    /// Returns this order with the pattern of all zeros or all NaNs replaced, where one is given. `None` if the type is
    /// not a float with two signed zeros or lacks such NaNs.
    pub fn replacing(self, ty: ElementType, zero: Option<u64>, nan: Option<u64>) -> Option<Key> {
        if zero.is_none() && nan.is_none() {
            return Some(self);
        }
        let greatest = greatest_number(ty)?;
        let nan_limit = if nan.is_some() { greatest } else { u64::MAX };
        let (zero_limit, zero, nan) = (u64::from(zero.is_some()), zero.unwrap_or(0), nan.unwrap_or(0));
        Some(Key { form: Form::Float(SpecialValues { zero_limit, zero, nan_limit, nan }), ..self })
    }

    /// Returns the reversed order.
    pub fn reversed(self) -> Key {
        Key { flip: self.flip ^ self.mask(), ..self }
    }

    /// Returns a mask of all bits of an element.
    pub fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Returns the key of an element's bits. Bits above the element's width are ignored.
    #[inline(always)]
    pub fn of(&self, bits: u64) -> u64 {
        let pattern = bits & self.mask();
        match self.form {
            Form::Integer => pattern ^ self.flip,
            Form::Float(SpecialValues { zero_limit, zero, nan_limit, nan }) => {
                let sign = 1 << (self.bits - 1);
                let magnitude = pattern & !sign;
                let pattern = if magnitude < zero_limit { zero } else { pattern };
                let pattern = if magnitude > nan_limit { nan } else { pattern };
                let ordered = if pattern & sign == 0 { pattern | sign } else { pattern ^ self.mask() };
                ordered ^ self.flip
            }
        }
    }

    /// Returns whether the key treats elements as floats rather than integers, and the bits that are inverted last.
    /// `None` if special values are replaced.
    pub fn plain(&self) -> Option<(bool, u64)> {
        match self.form {
            Form::Integer => Some((false, self.flip)),
            Form::Float(SpecialValues { zero_limit: 0, nan_limit: u64::MAX, .. }) => Some((true, self.flip)),
            Form::Float(_) => None,
        }
    }

    /// Encodes the key as integers that generated code can carry.
    pub fn to_numbers(self) -> [i64; Key::NUMBERS] {
        let (is_float, [zero_limit, zero, nan_limit, nan]) = match self.form {
            Form::Integer => (0, [0; 4]),
            Form::Float(SpecialValues { zero_limit, zero, nan_limit, nan }) => (1, [zero_limit, zero, nan_limit, nan]),
        };
        [i64::from(self.bits), is_float, self.flip as i64, zero_limit as i64, zero as i64, nan_limit as i64, nan as i64]
    }

    /// Decodes a key that [`Key::to_numbers`] encoded.
    pub fn from_numbers(&[bits, is_float, flip, zero_limit, zero, nan_limit, nan]: &[i64; Key::NUMBERS]) -> Key {
        let [zero_limit, zero, nan_limit, nan] = [zero_limit, zero, nan_limit, nan].map(|n| n as u64);
        let special = SpecialValues { zero_limit, zero, nan_limit, nan };
        let form = if is_float == 0 { Form::Integer } else { Form::Float(special) };
        Key { bits: (bits as u32).clamp(1, 64), form, flip: flip as u64 }
    }
}

/// Returns the pattern of the greatest number that is not NaN, for types with signed zeros. All greater magnitudes are
/// NaNs.
fn greatest_number(ty: ElementType) -> Option<u64> {
    use ElementType as T;
    Some(match ty {
        T::F64 => 0x7ff0_0000_0000_0000,
        T::F32 => 0x7f80_0000,
        T::BF16 => 0x7f80,
        T::F16 => 0x7c00,
        T::F8E5M2 => 0x7c,
        T::F8E4M3 => 0x78,
        T::F8E3M4 => 0x70,
        T::F8E4M3FN => 0x7e,
        T::F4E2M1FN => 0x7,
        _ => return None,
    })
}
