//! Types of instructions: `u32`, `bf16x2`, `pred`.

/// Interpretation of the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// Nothing in particular.
    Bits,
    /// An integer without sign.
    Unsigned,
    /// An integer of two's complement.
    Signed,
    /// An IEEE number.
    Float,
    /// The upper half of a single.
    Brain,
    /// A single of which all but the 10 upper bits of the fraction do not count: TF32.
    Tensor,
    /// True or false.
    Predicate,
}

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// Interpretation of the bits.
    pub kind: TypeKind,
    /// Bits of an element.
    pub bits: u32,
    /// Elements in a register.
    pub count: u32,
}

impl Type {
    /// `u32`, without a dot.
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

    /// Bytes of a register's worth.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits * self.count).div_ceil(8)
    }

    /// Whether it is one integer, or bits that instructions treat as one.
    pub fn is_integer(self) -> bool {
        self.count == 1 && matches!(self.kind, TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed)
    }

    /// Whether it has a sign in two's complement.
    pub fn is_signed(self) -> bool {
        self.kind == TypeKind::Signed
    }
}
