//! Elements of HLO in registers: an element type and lanes that hold values of it.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{ElementKind, ElementType};

use crate::elemental::format;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// `width` elements of one type. Lanes are in one of two forms, converted into each other when needed:
///
/// | element type | stored: as in memory | computed: as arithmetic wants it |
/// | --- | --- | --- |
/// | `pred` | `i8`, 0 or 1 | `i1` |
/// | `s1`..`s4`, `u1`..`u4` | `i8` | `i8`, sign- or zero-extended |
/// | `f16`, `bf16`, `f8*`, `f6*`, `f4*` | their bits in `i16` or `i8` | `float` |
/// | other integers, `f32`, `f64` | themselves | themselves |
/// | `c64`, `c128` | real and imaginary parts, apart | the same |
///
/// So data movement moves bits, and a chain of operations converts no more than it must.
#[derive(Clone, Copy, Debug)]
pub struct Value<'ctx> {
    element_type: ElementType,
    parts: Parts<'ctx>,
}

#[derive(Clone, Copy, Debug)]
enum Parts<'ctx> {
    Stored(BasicValueEnum<'ctx>),
    Computed(BasicValueEnum<'ctx>),
    Complex(BasicValueEnum<'ctx>, BasicValueEnum<'ctx>),
}

impl<'ctx> Value<'ctx> {
    /// Elements from lanes in the stored form. For complex types see [`Value::complex`].
    pub fn stored(element_type: ElementType, lanes: Lanes<'_, 'ctx>) -> Value<'ctx> {
        Value { element_type, parts: Parts::Stored(lanes.raw) }
    }

    /// Elements from lanes in the computed form, whose values must be ones that the type has; see
    /// [`Emitter::rounded`] for floats that may not be.
    pub fn computed(element_type: ElementType, lanes: Lanes<'_, 'ctx>) -> Value<'ctx> {
        Value { element_type, parts: Parts::Computed(lanes.raw) }
    }

    /// Complex elements from their parts.
    pub fn complex(element_type: ElementType, real: Lanes<'_, 'ctx>, imaginary: Lanes<'_, 'ctx>) -> Value<'ctx> {
        Value { element_type, parts: Parts::Complex(real.raw, imaginary.raw) }
    }

    /// The element type.
    pub fn element_type(self) -> ElementType {
        self.element_type
    }

    /// Whether lanes are in the computed form, and not in the stored one.
    pub fn is_computed(self) -> bool {
        matches!(self.parts, Parts::Computed(_))
    }

    /// The LLVM values: one, or two for complex types. For phis and for passing values through functions.
    pub fn raw(self) -> (BasicValueEnum<'ctx>, Option<BasicValueEnum<'ctx>>) {
        match self.parts {
            Parts::Stored(raw) | Parts::Computed(raw) => (raw, None),
            Parts::Complex(real, imaginary) => (real, Some(imaginary)),
        }
    }

    /// The same form and element type around other LLVM values of the same types, as a phi makes them.
    #[must_use]
    pub fn with_raw(self, raw: BasicValueEnum<'ctx>, imaginary: Option<BasicValueEnum<'ctx>>) -> Value<'ctx> {
        let parts = match (self.parts, imaginary) {
            (Parts::Stored(_), _) => Parts::Stored(raw),
            (Parts::Computed(_), _) => Parts::Computed(raw),
            (Parts::Complex(_, old), new) => Parts::Complex(raw, new.unwrap_or(old)),
        };
        Value { parts, ..self }
    }
}

/// The lane type of the stored form: of the parts for complex types.
pub fn stored_scalar(element_type: ElementType) -> Scalar {
    match element_type.real_part() {
        ElementType::F32 => Scalar::F32,
        ElementType::F64 => Scalar::F64,
        other => Scalar::Int(8 * other.byte_width() as u32),
    }
}

/// The lane type of the computed form: of the parts for complex types.
pub fn computed_scalar(element_type: ElementType) -> Scalar {
    match element_type.kind() {
        ElementKind::Pred => Scalar::Int(1),
        ElementKind::Float if element_type != ElementType::F64 => Scalar::F32,
        ElementKind::Float | ElementKind::Complex | ElementKind::Signed | ElementKind::Unsigned => {
            stored_scalar(element_type)
        }
    }
}

impl<'ctx> Emitter<'ctx> {
    /// The lanes of a value in the computed form; the real part of a complex value.
    pub fn compute<'e>(&'e self, value: Value<'ctx>) -> Lanes<'e, 'ctx> {
        match value.parts {
            Parts::Computed(raw) | Parts::Complex(raw, _) => self.lanes(raw),
            Parts::Stored(raw) => format::decode(value.element_type, self.lanes(raw)),
        }
    }

    /// The lanes of a value in the stored form; the real part of a complex value.
    pub fn store_form<'e>(&'e self, value: Value<'ctx>) -> Lanes<'e, 'ctx> {
        match value.parts {
            Parts::Stored(raw) | Parts::Complex(raw, _) => self.lanes(raw),
            Parts::Computed(raw) => format::encode(value.element_type, self.lanes(raw)),
        }
    }

    /// Real and imaginary part; the imaginary part of a real value is zero.
    pub fn complex_parts<'e>(&'e self, value: Value<'ctx>) -> [Lanes<'e, 'ctx>; 2] {
        match value.parts {
            Parts::Complex(real, imaginary) => [self.lanes(real), self.lanes(imaginary)],
            Parts::Stored(_) | Parts::Computed(_) => {
                let real = self.compute(value);
                [real, real.constant(0.0)]
            }
        }
    }

    /// A value of a float type from lanes of `f32` or `f64` that an operation computed: rounded to the type now, or,
    /// where [`EmitOptions`](crate::emitter::EmitOptions) allows, when it is stored.
    pub fn rounded(&self, element_type: ElementType, lanes: Lanes<'_, 'ctx>) -> Value<'ctx> {
        let narrow = computed_scalar(element_type) != stored_scalar(element_type);
        if narrow && self.options().round_each_operation {
            return Value::stored(element_type, format::encode(element_type, lanes));
        }
        Value::computed(element_type, lanes)
    }

    /// The number of lanes of a value.
    pub fn width(&self, value: Value<'ctx>) -> u32 {
        self.lanes(value.raw().0).width()
    }

    /// One value in every lane.
    pub fn constant(&self, element_type: ElementType, value: xla_hlo::Scalar, width: u32) -> Value<'ctx> {
        let part = |ty: ElementType, value: xla_hlo::Scalar| {
            let scalar = stored_scalar(ty);
            let bits = match value {
                // Narrow signed integers are kept sign-extended.
                xla_hlo::Scalar::Signed(value) => value as u64,
                other => other.to_bits(ty),
            };
            let constant = self.int_type(scalar.bits()).const_int(bits, false);
            self.splat_constant(constant.into(), width).cast_bits(scalar)
        };
        match value {
            xla_hlo::Scalar::Complex(re, im) => {
                let ty = element_type.real_part();
                let [re, im] = [re, im].map(|x| part(ty, xla_hlo::Scalar::Float(x)));
                Value::complex(element_type, re, im)
            }
            // The constant folder decodes it.
            value => Value::stored(element_type, part(element_type, value)),
        }
    }

    /// A scalar value in `width` lanes.
    pub fn splat(&self, value: Value<'ctx>, width: u32) -> Value<'ctx> {
        let (raw, imaginary) = value.raw();
        let splat = |raw| self.lanes(raw).splat(width).raw;
        value.with_raw(splat(raw), imaginary.map(splat))
    }

    /// Loads `width` consecutive elements from element `index` of the array at `base` on. With a mask (`i1` lanes),
    /// lanes that are not set are not read.
    pub fn load(
        &self,
        element_type: ElementType,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        width: u32,
        mask: Option<Lanes<'_, 'ctx>>,
    ) -> Value<'ctx> {
        let scalar = stored_scalar(element_type);
        let mask = mask.map(|mask| self.lanes(mask.raw));
        if !element_type.is_complex() {
            return Value::stored(element_type, self.load_lanes(base, index, scalar, width, mask));
        }
        let mask = mask.map(|mask| mask.interleave(mask));
        let both = self.load_lanes(base, index + index, scalar, 2 * width, mask);
        let [real, imaginary] = both.deinterleave();
        Value::complex(element_type, real, imaginary)
    }

    /// Stores consecutive elements from element `index` of the array at `base` on; with a mask, only the lanes set.
    pub fn store(
        &self,
        value: Value<'ctx>,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        mask: Option<Lanes<'_, 'ctx>>,
    ) {
        let Parts::Complex(real, imaginary) = value.parts else {
            return self.store_lanes(self.store_form(value), base, index, mask);
        };
        let both = self.lanes(real).interleave(self.lanes(imaginary));
        let mask = mask.map(|mask| mask.interleave(mask));
        self.store_lanes(both, base, index + index, mask);
    }

    /// The elements of the array at `base` at `indices`, one a lane; masked as [`Emitter::load`].
    pub fn gather(
        &self,
        element_type: ElementType,
        base: PointerValue<'ctx>,
        indices: Lanes<'_, 'ctx>,
        mask: Option<Lanes<'_, 'ctx>>,
    ) -> Value<'ctx> {
        let scalar = stored_scalar(element_type);
        let indices = self.lanes(indices.raw);
        let mask = mask.map(|mask| self.lanes(mask.raw));
        if !element_type.is_complex() {
            return Value::stored(element_type, self.gather_lanes(base, indices, scalar, mask));
        }
        let first = indices + indices;
        let part = |offset: i64| self.gather_lanes(base, first + offset, scalar, mask);
        Value::complex(element_type, part(0), part(1))
    }

    /// Stores each lane to the element of `base` at its index; with a mask, only the lanes set. Of lanes with equal
    /// indices the last one wins.
    pub fn scatter(
        &self,
        value: Value<'ctx>,
        base: PointerValue<'ctx>,
        indices: Lanes<'_, 'ctx>,
        mask: Option<Lanes<'_, 'ctx>>,
    ) {
        let Parts::Complex(real, imaginary) = value.parts else {
            return self.scatter_lanes(self.store_form(value), base, indices, mask);
        };
        let first = indices + indices;
        self.scatter_lanes(self.lanes(real), base, first, mask);
        self.scatter_lanes(self.lanes(imaginary), base, first + 1, mask);
    }
}
