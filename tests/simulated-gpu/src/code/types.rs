//! Types of instructions, such as `u32`, `bf16x2` or `pred`.

/// Interpretation of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// Uninterpreted bits.
    Bits,
    /// Unsigned integer.
    Unsigned,
    /// Two's complement integer.
    Signed,
    /// IEEE float.
    Float,
    /// bf16: the upper half of a single.
    Brain,
    /// TF32: a single of which only the upper 10 bits of the fraction count.
    Tensor,
    /// Boolean.
    Predicate,
}

/// Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// Interpretation of the bits.
    pub kind: TypeKind,
    /// Width of an element in bits.
    pub bits: u32,
    /// Number of elements in a register.
    pub count: u32,
}

impl Type {
    /// Parses a type such as `u32`, without a dot.
    pub fn parse(name: &str) -> Option<Type> {
        let (kind, bits, count) = match name {
            "pred" => (TypeKind::Predicate, 1, 1),
            "bf16" => (TypeKind::Brain, 16, 1),
            "tf32" => (TypeKind::Tensor, 32, 1),
            "bf16x2" => (TypeKind::Brain, 16, 2),
            "f16x2" => (TypeKind::Float, 16, 2),
            "f32x2" => (TypeKind::Float, 32, 2),
            "u16x2" => (TypeKind::Unsigned, 16, 2),
            "s16x2" => (TypeKind::Signed, 16, 2),
            _ => {
                let kind = match name.as_bytes().first()? {
                    b'b' => TypeKind::Bits,
                    b'u' => TypeKind::Unsigned,
                    b's' => TypeKind::Signed,
                    b'f' => TypeKind::Float,
                    _ => return None,
                };
                let bits = match &name[1..] {
                    "8" => 8,
                    "16" => 16,
                    "32" => 32,
                    "64" => 64,
                    "128" => 128,
                    _ => return None,
                };
                let is_type = kind != TypeKind::Float || matches!(bits, 16 | 32 | 64);
                if !is_type {
                    return None;
                }
                (kind, bits, 1)
            }
        };
        Some(Type { kind, bits, count })
    }

    /// Returns the size of a register in bytes, all elements included.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits * self.count).div_ceil(8)
    }

    /// Whether this is one integer, or bits that instructions treat as one.
    pub fn is_integer(self) -> bool {
        self.count == 1 && matches!(self.kind, TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed)
    }

    /// Whether this is a signed integer.
    pub fn is_signed(self) -> bool {
        self.kind == TypeKind::Signed
    }
}
