//! HLO elements in registers: an element type, and lanes that hold values of it.

use inkwell::values::BasicValueEnum;
use xla_hlo::{ElementKind, ElementType, Error};

use super::format;
use super::scalar::{computed_scalar, stored_scalar};
use crate::emitter::Emitter;
use crate::lanes::Lanes;

/// Element of a type, for each lane of the surrounding code; see [`crate::elemental`] for the forms of lanes.
#[derive(Clone, Copy)]
pub struct Value<'e, 'ctx> {
    ty: ElementType,
    parts: Parts<'e, 'ctx>,
}

#[derive(Clone, Copy)]
enum Parts<'e, 'ctx> {
    Stored(Lanes<'e, 'ctx>),
    Computed(Lanes<'e, 'ctx>),
    Complex(Lanes<'e, 'ctx>, Lanes<'e, 'ctx>),
}

/// Whether the [options](crate::emitter::EmitOptions) allow values of a narrow type to be rounded when they are stored.
/// Some types with fewer than 16 bits have no sign, zero or infinity: values beyond their range must not survive.
pub(super) fn may_wait(ty: ElementType, emitter: &Emitter<'_>) -> bool {
    ty.kind() == ElementKind::Float && ty.bit_width() == 16 && !emitter.options().round_each_operation
}

impl<'e, 'ctx> Value<'e, 'ctx> {
    /// Creates a real value from lanes in the computed form, whose numbers must be representable in the type.
    pub fn new(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        Value { ty, parts: Parts::Computed(lanes) }
    }

    /// Creates a real value from lanes in the stored form.
    pub fn stored(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        Value { ty, parts: Parts::Stored(lanes) }
    }

    /// Creates a float from computed lanes of `f32` or `f64`, rounded to the type at once, or when it is stored if
    /// [`EmitOptions`](crate::emitter::EmitOptions) allow it.
    pub fn rounded(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        let narrow = computed_scalar(ty) != stored_scalar(ty);
        match narrow && !may_wait(ty, lanes.emitter()) {
            true => Value::stored(ty, format::encode(ty, lanes)),
            false => Value::new(ty, lanes.to_float(computed_scalar(ty))),
        }
    }

    /// Creates a complex value.
    pub fn complex(ty: ElementType, real: Lanes<'e, 'ctx>, imaginary: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        Value { ty, parts: Parts::Complex(real, imaginary) }
    }

    /// Returns the element type.
    pub fn element_type(&self) -> ElementType {
        self.ty
    }

    /// Returns the lanes of a real value in the computed form, or the real part.
    pub fn lanes(&self) -> Lanes<'e, 'ctx> {
        match self.parts {
            Parts::Computed(lanes) | Parts::Complex(lanes, _) => lanes,
            Parts::Stored(lanes) => format::decode(self.ty, lanes),
        }
    }

    /// Returns the lanes of a real value in the computed form, rounded to the type even if rounding may wait.
    pub(super) fn rounded_lanes(&self) -> Lanes<'e, 'ctx> {
        match self.parts {
            Parts::Computed(lanes) if may_wait(self.ty, lanes.emitter()) => {
                format::decode(self.ty, format::encode(self.ty, lanes))
            }
            _ => self.lanes(),
        }
    }

    /// Returns the lanes of a real value in the stored form, or the real part.
    pub fn stored_lanes(&self) -> Lanes<'e, 'ctx> {
        match self.parts {
            Parts::Stored(lanes) | Parts::Complex(lanes, _) => lanes,
            Parts::Computed(lanes) => format::encode(self.ty, lanes),
        }
    }

    /// Whether the lanes are in the computed form.
    pub(super) fn is_computed(&self) -> bool {
        matches!(self.parts, Parts::Computed(_))
    }

    /// Returns the imaginary part of a complex value.
    pub fn imaginary(&self) -> Option<Lanes<'e, 'ctx>> {
        match self.parts {
            Parts::Complex(_, imaginary) => Some(imaginary),
            Parts::Stored(_) | Parts::Computed(_) => None,
        }
    }

    /// Returns the number of lanes.
    pub fn width(&self) -> u32 {
        match self.parts {
            Parts::Stored(lanes) | Parts::Computed(lanes) | Parts::Complex(lanes, _) => lanes.width(),
        }
    }

    /// Returns the emitter of the lanes.
    pub(super) fn emitter(&self) -> &'e Emitter<'ctx> {
        match self.parts {
            Parts::Stored(lanes) | Parts::Computed(lanes) | Parts::Complex(lanes, _) => lanes.emitter(),
        }
    }

    /// Applies `f` to all parts, in any form.
    fn map(self, f: impl Fn(Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>) -> Self {
        let parts = match self.parts {
            Parts::Stored(lanes) => Parts::Stored(f(lanes)),
            Parts::Computed(lanes) => Parts::Computed(f(lanes)),
            Parts::Complex(real, imaginary) => Parts::Complex(f(real), f(imaginary)),
        };
        Value { parts, ..self }
    }

    /// Splats one lane to `width` lanes; returns a value of that width unchanged.
    #[must_use]
    pub fn splat(self, width: u32) -> Self {
        if self.width() == width { self } else { self.map(|lanes| lanes.splat(width)) }
    }

    /// Extracts `count` lanes from `first` on.
    #[must_use]
    pub fn slice(self, first: u32, count: u32) -> Self {
        self.map(|lanes| lanes.slice(first, count))
    }

    /// Permutes lanes: lane `i` of the result is lane `indices[i]` of this value.
    #[must_use]
    pub fn permuted(self, indices: &[u32]) -> Self {
        self.map(|lanes| lanes.shuffle(lanes, indices))
    }

    /// Reverses the order of the lanes.
    #[must_use]
    pub fn reversed(self) -> Self {
        self.map(Lanes::reversed)
    }

    /// Returns the LLVM values in the computed form, one per part, as phis and functions carry them.
    pub fn raws(&self) -> Vec<BasicValueEnum<'ctx>> {
        std::iter::once(self.lanes()).chain(self.imaginary()).map(Lanes::raw).collect()
    }

    /// Whether the lanes are only in the stored form.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.parts, Parts::Stored(_))
    }

    /// Returns the LLVM values like [`Value::raws`], or the stored lanes of a real value if `stored` is set.
    pub(crate) fn raws_in(&self, stored: bool) -> Vec<BasicValueEnum<'ctx>> {
        if stored && self.imaginary().is_none() { vec![self.stored_lanes().raw()] } else { self.raws() }
    }

    /// Rebuilds a value from its LLVM values; inverse of [`Value::raws`].
    pub fn from_raws(emitter: &'e Emitter<'ctx>, ty: ElementType, raws: &[BasicValueEnum<'ctx>]) -> Self {
        match raws {
            [real, imaginary] => Value::complex(ty, emitter.lanes(*real), emitter.lanes(*imaginary)),
            [lanes, ..] => Value::new(ty, emitter.lanes(*lanes)),
            [] => {
                emitter.fail(Error::internal(format!("a value of element type {ty} has no LLVM values")));
                let zero = emitter.lane_type(computed_scalar(ty), 1).const_zero();
                Value::new(ty, emitter.lanes(zero))
            }
        }
    }
}
