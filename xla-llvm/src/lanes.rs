//! Lanes: a scalar or a vector of the target's registers, with the arithmetic written once for both.

mod cast;
mod control;
mod counter;
mod dots;
mod intrinsics;
mod mask;
mod memory;
mod multiply;
pub(crate) mod operators;
mod shuffle;
mod transpose;

use inkwell::types::{BasicType, BasicTypeEnum, FloatType, IntType, VectorType};
use inkwell::values::BasicValueEnum;

use crate::emitter::Emitter;
use xla_hlo::Error;

/// Type of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// Integer of this number of bits; 1 bit is a mask.
    Int(u32),
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Scalar {
    /// Returns the number of bits of one lane.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::Int(bits) => bits,
            Scalar::F16 => 16,
            Scalar::F32 => 32,
            Scalar::F64 => 64,
        }
    }
}

/// Value of `width` lanes of one type: an LLVM scalar if the width is 1, a vector otherwise. One formula over `Lanes`
/// therefore emits both scalar and vector code, with bitwise equal results.
///
/// Operators emit instructions. Operands must have one type; constants (`f64` for floats, `i64` for integers) are splat
/// to the type of the other operand. Integer arithmetic wraps.
#[derive(Clone, Copy)]
pub struct Lanes<'e, 'ctx> {
    pub(crate) emitter: &'e Emitter<'ctx>,
    pub(crate) raw: BasicValueEnum<'ctx>,
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    pub(crate) fn new(emitter: &'e Emitter<'ctx>, raw: BasicValueEnum<'ctx>) -> Lanes<'e, 'ctx> {
        Lanes { emitter, raw }
    }

    /// Returns the LLVM value.
    pub fn raw(self) -> BasicValueEnum<'ctx> {
        self.raw
    }

    /// Returns the emitter that this value belongs to.
    pub fn emitter(self) -> &'e Emitter<'ctx> {
        self.emitter
    }

    /// Returns the number of lanes.
    pub fn width(self) -> u32 {
        match self.raw {
            BasicValueEnum::VectorValue(vector) => vector.get_type().get_size(),
            _ => 1,
        }
    }

    /// Returns the type of a lane. A pointer, which is never an operand of arithmetic, counts as a 64-bit integer.
    pub fn scalar(self) -> Scalar {
        let scalar = match self.raw.get_type() {
            BasicTypeEnum::VectorType(vector) => vector.get_element_type(),
            other => other,
        };
        match scalar {
            BasicTypeEnum::IntType(int) => Scalar::Int(int.get_bit_width()),
            BasicTypeEnum::FloatType(float) => match float.get_bit_width() {
                16 => Scalar::F16,
                32 => Scalar::F32,
                _ => Scalar::F64,
            },
            _ => Scalar::Int(64),
        }
    }

    /// Whether lanes are floating-point numbers.
    pub fn is_float(self) -> bool {
        !matches!(self.scalar(), Scalar::Int(_))
    }

    /// Returns the LLVM type of the same number of lanes of another scalar type.
    pub fn type_of(self, scalar: Scalar) -> BasicTypeEnum<'ctx> {
        self.emitter.lane_type(scalar, self.width())
    }

    /// Splats `value`, rounded to the lanes' floating-point type or converted to their integer type.
    pub fn constant(self, value: f64) -> Lanes<'e, 'ctx> {
        match self.scalar() {
            Scalar::Int(_) => self.int(value as i64),
            scalar => {
                let constant = self.emitter.float_type(scalar).const_float(value);
                self.emitter.splat_constant(constant.into(), self.width())
            }
        }
    }

    /// Splats `value`, truncated to the lanes' integer type, or converted to their floating-point type.
    pub fn int(self, value: i64) -> Lanes<'e, 'ctx> {
        match self.scalar() {
            Scalar::Int(bits) => {
                let constant = self.emitter.int_type(bits).const_int(value as u64, true);
                self.emitter.splat_constant(constant.into(), self.width())
            }
            _ => self.constant(value as f64),
        }
    }

    /// Returns a constant mask of the same width with all lanes equal to `value`.
    pub fn mask(self, value: bool) -> Lanes<'e, 'ctx> {
        let constant = self.emitter.int_type(1).const_int(value.into(), false);
        self.emitter.splat_constant(constant.into(), self.width())
    }

    /// Splats the constant with the given bit pattern, in this floating-point type.
    pub fn from_bits(self, bits: u64) -> Lanes<'e, 'ctx> {
        let constant = self.emitter.int_type(self.scalar().bits()).const_int(bits, false);
        self.emitter.splat_constant(constant.into(), self.width()).cast_bits(self.scalar())
    }

    /// Whether another value has this type; records an error if not.
    pub(crate) fn agrees(self, other: Lanes<'e, 'ctx>) -> bool {
        let agrees = self.raw.get_type() == other.raw.get_type();
        if !agrees {
            self.emitter.fail(Error::internal(format!(
                "operands of an instruction have different types: {} and {}",
                self.raw.get_type(),
                other.raw.get_type()
            )));
        }
        agrees
    }

    /// Returns the result of building an instruction, or this value (and records the error) if that failed.
    pub(crate) fn or_self<E>(self, result: Result<BasicValueEnum<'ctx>, E>) -> Lanes<'e, 'ctx>
    where
        E: std::fmt::Display,
    {
        match result {
            Ok(raw) => Lanes { raw, ..self },
            Err(reason) => {
                self.emitter.fail(Error::internal(format!("LLVM refuses an instruction: {reason}")));
                self
            }
        }
    }
}

impl<'ctx> Emitter<'ctx> {
    /// Wraps an LLVM value, so that arithmetic can be emitted on it.
    pub fn lanes(&self, value: impl Into<BasicValueEnum<'ctx>>) -> Lanes<'_, 'ctx> {
        Lanes::new(self, value.into())
    }

    /// Returns LLVM's integer type of `bits` bits.
    pub fn int_type(&self, bits: u32) -> IntType<'ctx> {
        match std::num::NonZeroU32::new(bits).map(|bits| self.context.custom_width_int_type(bits)) {
            Some(Ok(int)) => int,
            Some(Err(_)) | None => self.context.i64_type(),
        }
    }

    /// Returns LLVM's floating-point type; f64 for an integer scalar.
    pub(crate) fn float_type(&self, scalar: Scalar) -> FloatType<'ctx> {
        match scalar {
            Scalar::F16 => self.context.f16_type(),
            Scalar::F32 => self.context.f32_type(),
            Scalar::F64 | Scalar::Int(_) => self.context.f64_type(),
        }
    }

    /// Returns the LLVM type of `width` lanes: the scalar itself for one lane, otherwise a vector.
    pub fn lane_type(&self, scalar: Scalar, width: u32) -> BasicTypeEnum<'ctx> {
        match scalar {
            Scalar::Int(bits) => widen(self.int_type(bits).into(), width),
            float => widen(self.float_type(float).into(), width),
        }
    }

    /// Splats a scalar constant to `width` lanes.
    pub fn splat_constant(&self, constant: BasicValueEnum<'ctx>, width: u32) -> Lanes<'_, 'ctx> {
        let raw = if width <= 1 {
            constant
        } else {
            match constant {
                BasicValueEnum::IntValue(int) => VectorType::const_vector(&vec![int; width as usize]).into(),
                BasicValueEnum::FloatValue(float) => VectorType::const_vector(&vec![float; width as usize]).into(),
                other => {
                    self.fail(Error::internal(format!("a constant of type {} cannot be splat", other.get_type())));
                    other
                }
            }
        };
        Lanes::new(self, raw)
    }
}

fn widen(scalar: BasicTypeEnum<'_>, width: u32) -> BasicTypeEnum<'_> {
    match scalar {
        _ if width <= 1 => scalar,
        BasicTypeEnum::IntType(int) => int.vec_type(width).as_basic_type_enum(),
        BasicTypeEnum::FloatType(float) => float.vec_type(width).as_basic_type_enum(),
        other => other,
    }
}
