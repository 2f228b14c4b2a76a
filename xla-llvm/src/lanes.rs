//! Lanes: a scalar or a vector of the target's registers, with the arithmetic written once for both.

mod cast;
mod control;
mod intrinsics;
mod mask;
mod memory;
mod multiply;
pub(crate) mod operators;
mod shuffle;

use inkwell::types::{BasicType, BasicTypeEnum, FloatType, IntType, VectorType};
use inkwell::values::BasicValueEnum;

use crate::emitter::Emitter;
use xla_hlo::Error;

/// The type of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// An integer of that many bits; 1 is a mask.
    Int(u32),
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Scalar {
    /// Bits of one lane.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::Int(bits) => bits,
            Scalar::F16 => 16,
            Scalar::F32 => 32,
            Scalar::F64 => 64,
        }
    }
}

/// A value of `width` equal lanes: an LLVM scalar when the width is one, a vector otherwise. The same formula over
/// `Lanes` therefore emits scalar and vector code, and both compute the same bits.
///
/// Operators build instructions. Operands must have one type; constants (`f64` for floats, `i64` for integers) are
/// splat to the type of the other operand. Integer arithmetic wraps.
#[derive(Clone, Copy)]
pub struct Lanes<'e, 'ctx> {
    pub(crate) emitter: &'e Emitter<'ctx>,
    pub(crate) raw: BasicValueEnum<'ctx>,
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    pub(crate) fn new(emitter: &'e Emitter<'ctx>, raw: BasicValueEnum<'ctx>) -> Lanes<'e, 'ctx> {
        Lanes { emitter, raw }
    }

    /// The LLVM value.
    pub fn raw(self) -> BasicValueEnum<'ctx> {
        self.raw
    }

    /// The emitter that this value belongs to.
    pub fn emitter(self) -> &'e Emitter<'ctx> {
        self.emitter
    }

    /// Number of lanes.
    pub fn width(self) -> u32 {
        match self.raw {
            BasicValueEnum::VectorValue(vector) => vector.get_type().get_size(),
            _ => 1,
        }
    }

    /// The type of a lane. (A pointer, which never is arithmetic's operand, counts as a 64-bit integer.)
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

    /// Whether lanes are floating-point.
    pub fn is_float(self) -> bool {
        !matches!(self.scalar(), Scalar::Int(_))
    }

    /// The LLVM type of as many lanes of another scalar type.
    pub fn type_of(self, scalar: Scalar) -> BasicTypeEnum<'ctx> {
        self.emitter.lane_type(scalar, self.width())
    }

    /// `value` in every lane, rounded to the lanes' floating-point type or converted to their integer type.
    pub fn constant(self, value: f64) -> Lanes<'e, 'ctx> {
        match self.scalar() {
            Scalar::Int(_) => self.int(value as i64),
            scalar => {
                let constant = self.emitter.float_type(scalar).const_float(value);
                self.emitter.splat_constant(constant.into(), self.width())
            }
        }
    }

    /// `value` in every lane, cut to the lanes' integer type, or as a floating-point number.
    pub fn int(self, value: i64) -> Lanes<'e, 'ctx> {
        match self.scalar() {
            Scalar::Int(bits) => {
                let constant = self.emitter.int_type(bits).const_int(value as u64, true);
                self.emitter.splat_constant(constant.into(), self.width())
            }
            _ => self.constant(value as f64),
        }
    }

    /// A mask of the same width with every lane `value`.
    pub fn mask(self, value: bool) -> Lanes<'e, 'ctx> {
        let constant = self.emitter.int_type(1).const_int(value.into(), false);
        self.emitter.splat_constant(constant.into(), self.width())
    }

    /// The constant with the given bit pattern, in every lane of this floating-point type.
    pub fn from_bits(self, bits: u64) -> Lanes<'e, 'ctx> {
        let constant = self.emitter.int_type(self.scalar().bits()).const_int(bits, false);
        self.emitter.splat_constant(constant.into(), self.width()).cast_bits(self.scalar())
    }

    /// Whether another value has this type; remembers a mistake if not.
    pub(crate) fn agrees(self, other: Lanes<'e, 'ctx>) -> bool {
        let agrees = self.raw.get_type() == other.raw.get_type();
        if !agrees {
            self.emitter.fail(Error::internal(format!(
                "emitted operands differ in type: {} and {}",
                self.raw.get_type(),
                other.raw.get_type()
            )));
        }
        agrees
    }

    /// The result of building an instruction, or this value where that failed (and the failure is remembered).
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
    /// Wraps an LLVM value, so that arithmetic can be done on it.
    pub fn lanes(&self, value: impl Into<BasicValueEnum<'ctx>>) -> Lanes<'_, 'ctx> {
        Lanes::new(self, value.into())
    }

    /// LLVM's integer type of `bits` bits.
    pub fn int_type(&self, bits: u32) -> IntType<'ctx> {
        match std::num::NonZeroU32::new(bits).map(|bits| self.context.custom_width_int_type(bits)) {
            Some(Ok(int)) => int,
            Some(Err(_)) | None => self.context.i64_type(),
        }
    }

    /// LLVM's floating-point type; f64 for an integer scalar.
    pub(crate) fn float_type(&self, scalar: Scalar) -> FloatType<'ctx> {
        match scalar {
            Scalar::F16 => self.context.f16_type(),
            Scalar::F32 => self.context.f32_type(),
            Scalar::F64 | Scalar::Int(_) => self.context.f64_type(),
        }
    }

    /// The LLVM type of `width` lanes: the scalar itself for one, a vector otherwise.
    pub fn lane_type(&self, scalar: Scalar, width: u32) -> BasicTypeEnum<'ctx> {
        match scalar {
            Scalar::Int(bits) => widen(self.int_type(bits).into(), width),
            float => widen(self.float_type(float).into(), width),
        }
    }

    /// A scalar constant in `width` lanes.
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
