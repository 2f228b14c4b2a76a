//! Element types of arrays, with a table of their names, widths and kinds.

/// Kind of an element type: the kind of number that its values are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElementKind {
    /// Truth values.
    Pred,
    /// Two's complement integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Floating-point numbers of any format.
    Float,
    /// Pairs of floating-point numbers, real part first.
    Complex,
}

macro_rules! element_types {
    ($($(#[$doc:meta])* $variant:ident $name:literal $bits:literal $kind:ident;)*) => {
        /// Type of an array's elements. The lower-case variant names are the names in HLO text.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ElementType { $($(#[$doc])* $variant,)* }

        impl ElementType {
            /// All element types, in the order of declaration.
            pub const ALL: &[ElementType] = &[$(ElementType::$variant,)*];

            /// Returns the name in HLO text, such as `f32`.
            pub const fn name(self) -> &'static str {
                match self { $(ElementType::$variant => $name,)* }
            }

            /// Returns the number of bits of one value, 1 for `pred`.
            pub const fn bit_width(self) -> usize {
                match self { $(ElementType::$variant => $bits,)* }
            }

            /// Returns the kind of the type.
            pub const fn kind(self) -> ElementKind {
                match self { $(ElementType::$variant => ElementKind::$kind,)* }
            }

            /// Returns the type with that name in HLO text.
            pub fn from_name(name: &str) -> Option<ElementType> {
                match name { $($name => Some(ElementType::$variant),)* _ => None }
            }
        }
    };
}

element_types! {
    /// Truth value, stored as a byte 0 or 1.
    Pred "pred" 1 Pred;
    /// 1-bit signed integer.
    S1 "s1" 1 Signed;
    /// 2-bit signed integer.
    S2 "s2" 2 Signed;
    /// 4-bit signed integer.
    S4 "s4" 4 Signed;
    /// 8-bit signed integer.
    S8 "s8" 8 Signed;
    /// 16-bit signed integer.
    S16 "s16" 16 Signed;
    /// 32-bit signed integer.
    S32 "s32" 32 Signed;
    /// 64-bit signed integer.
    S64 "s64" 64 Signed;
    /// 1-bit unsigned integer.
    U1 "u1" 1 Unsigned;
    /// 2-bit unsigned integer.
    U2 "u2" 2 Unsigned;
    /// 4-bit unsigned integer.
    U4 "u4" 4 Unsigned;
    /// 8-bit unsigned integer.
    U8 "u8" 8 Unsigned;
    /// 16-bit unsigned integer.
    U16 "u16" 16 Unsigned;
    /// 32-bit unsigned integer.
    U32 "u32" 32 Unsigned;
    /// 64-bit unsigned integer.
    U64 "u64" 64 Unsigned;
    /// 4-bit float: 2 exponent bits, 1 mantissa bit, neither infinity nor NaN.
    F4E2M1FN "f4e2m1fn" 4 Float;
    /// 6-bit float: 3 exponent bits, 2 mantissa bits, neither infinity nor NaN.
    F6E3M2FN "f6e3m2fn" 6 Float;
    /// 6-bit float: 2 exponent bits, 3 mantissa bits, neither infinity nor NaN.
    F6E2M3FN "f6e2m3fn" 6 Float;
    /// 8-bit IEEE-like float: 5 exponent bits, 2 mantissa bits.
    F8E5M2 "f8e5m2" 8 Float;
    /// 8-bit IEEE-like float: 4 exponent bits, 3 mantissa bits.
    F8E4M3 "f8e4m3" 8 Float;
    /// 8-bit float: 4 exponent bits, 3 mantissa bits, no infinity, NaN is all ones.
    F8E4M3FN "f8e4m3fn" 8 Float;
    /// 8-bit float, exponent bias 11, no infinity, one NaN (the pattern of -0), no -0.
    F8E4M3B11FNUZ "f8e4m3b11fnuz" 8 Float;
    /// 8-bit IEEE-like float: 3 exponent bits, 4 mantissa bits.
    F8E3M4 "f8e3m4" 8 Float;
    /// 8-bit float, exponent bias 16, no infinity, one NaN (the pattern of -0), no -0.
    F8E5M2FNUZ "f8e5m2fnuz" 8 Float;
    /// 8-bit float, exponent bias 8, no infinity, one NaN (the pattern of -0), no -0.
    F8E4M3FNUZ "f8e4m3fnuz" 8 Float;
    /// 8-bit float with exponent bits only: powers of two from 2^-127 to 2^127, 0xFF is NaN; no zero, no sign.
    F8E8M0FNU "f8e8m0fnu" 8 Float;
    /// IEEE half precision.
    F16 "f16" 16 Float;
    /// Upper half of an `f32`: 8 exponent bits, 7 mantissa bits.
    BF16 "bf16" 16 Float;
    /// IEEE single precision.
    F32 "f32" 32 Float;
    /// IEEE double precision.
    F64 "f64" 64 Float;
    /// Two `f32`.
    C64 "c64" 64 Complex;
    /// Two `f64`.
    C128 "c128" 128 Complex;
}

impl ElementType {
    /// Returns the number of bytes of one element in an unpacked array: 1 for all types of at most 8 bits.
    pub const fn byte_width(self) -> usize {
        self.bit_width().div_ceil(8)
    }

    /// Whether values are integers, signed or unsigned; false for `pred`.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), ElementKind::Signed | ElementKind::Unsigned)
    }

    /// Whether values are real floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), ElementKind::Float)
    }

    /// Whether values are complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), ElementKind::Complex)
    }

    /// Whether the type has negative values; of the float types, only `f8e8m0fnu` has none.
    pub const fn is_signed(self) -> bool {
        match self.kind() {
            ElementKind::Signed | ElementKind::Complex => true,
            ElementKind::Float => !matches!(self, ElementType::F8E8M0FNU),
            ElementKind::Pred | ElementKind::Unsigned => false,
        }
    }

    /// Returns the type of the real and imaginary parts of a complex type, and every other type unchanged.
    pub const fn real_part(self) -> ElementType {
        match self {
            ElementType::C64 => ElementType::F32,
            ElementType::C128 => ElementType::F64,
            other => other,
        }
    }

    /// Returns the complex type whose parts are of this type.
    pub const fn complex_of(self) -> Option<ElementType> {
        match self {
            ElementType::F32 => Some(ElementType::C64),
            ElementType::F64 => Some(ElementType::C128),
            _ => None,
        }
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
