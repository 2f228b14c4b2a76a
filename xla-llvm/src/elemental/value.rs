//! Elements of HLO in registers: an element type, and lanes that hold values of it.

use inkwell::values::BasicValueEnum;
use xla_hlo::{ElementType, Error};

use super::format;
use super::scalar::{computed_scalar, stored_scalar};
use crate::emitter::Emitter;
use crate::lanes::Lanes;

/// An element of some type in as many lanes as the code works on; see [`crate::elemental`] for what the lanes are.
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

impl<'e, 'ctx> Value<'e, 'ctx> {
    /// A real value from lanes in the computed form, whose numbers the type must have.
    pub fn new(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        Value { ty, parts: Parts::Computed(lanes) }
    }

    /// A real value from lanes in the stored form.
    pub fn stored(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        Value { ty, parts: Parts::Stored(lanes) }
    }

    /// A float from lanes of `f32` or `f64` that an operation computed: rounded to the type now, or, where
    /// [`EmitOptions`](crate::emitter::EmitOptions) allows, when it is stored.
    pub fn rounded(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        let narrow = computed_scalar(ty) != stored_scalar(ty);
        // Some of the narrower types lack a sign, zero or infinity: what is beyond them must not come back.
        let may_wait = ty.bit_width() == 16 && !lanes.emitter().options().round_each_operation;
        match narrow && !may_wait {
            true => Value::stored(ty, format::encode(ty, lanes)),
            false => Value::new(ty, lanes.to_float(computed_scalar(ty))),
        }
    }

    /// A complex value.
    pub fn complex(ty: ElementType, real: Lanes<'e, 'ctx>, imaginary: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        Value { ty, parts: Parts::Complex(real, imaginary) }
    }

    /// The element type.
    pub fn element_type(&self) -> ElementType {
        self.ty
    }

    /// The lanes of a real value in the computed form, or of the real part.
    pub fn lanes(&self) -> Lanes<'e, 'ctx> {
        match self.parts {
            Parts::Computed(lanes) | Parts::Complex(lanes, _) => lanes,
            Parts::Stored(lanes) => format::decode(self.ty, lanes),
        }
    }

    /// The lanes of a real value in the stored form, or of the real part.
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

    /// The imaginary part of a complex value.
    pub fn imaginary(&self) -> Option<Lanes<'e, 'ctx>> {
        match self.parts {
            Parts::Complex(_, imaginary) => Some(imaginary),
            Parts::Stored(_) | Parts::Computed(_) => None,
        }
    }

    /// Number of lanes.
    pub fn width(&self) -> u32 {
        match self.parts {
            Parts::Stored(lanes) | Parts::Computed(lanes) | Parts::Complex(lanes, _) => lanes.width(),
        }
    }

    /// The same in all parts, whatever their form.
    fn map(self, f: impl Fn(Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>) -> Self {
        let parts = match self.parts {
            Parts::Stored(lanes) => Parts::Stored(f(lanes)),
            Parts::Computed(lanes) => Parts::Computed(f(lanes)),
            Parts::Complex(real, imaginary) => Parts::Complex(f(real), f(imaginary)),
        };
        Value { parts, ..self }
    }

    /// One lane in each of `width`; nothing to do for a value that has them.
    #[must_use]
    pub fn splat(self, width: u32) -> Self {
        if self.width() == width { self } else { self.map(|lanes| lanes.splat(width)) }
    }

    /// `count` lanes from `first` on.
    #[must_use]
    pub fn slice(self, first: u32, count: u32) -> Self {
        self.map(|lanes| lanes.slice(first, count))
    }

    /// Lanes by the number of the lane of this value that they are to hold.
    #[must_use]
    pub fn permuted(self, indices: &[u32]) -> Self {
        self.map(|lanes| lanes.shuffle(lanes, indices))
    }

    /// Lanes in the opposite order.
    #[must_use]
    pub fn reversed(self) -> Self {
        self.map(Lanes::reversed)
    }

    /// LLVM's values in the computed form, one for each part: what phis and functions carry.
    pub fn raws(&self) -> Vec<BasicValueEnum<'ctx>> {
        std::iter::once(self.lanes()).chain(self.imaginary()).map(Lanes::raw).collect()
    }

    /// Whether the lanes are in the stored form alone.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.parts, Parts::Stored(_))
    }

    /// As [`Value::raws`], or the lanes of a real value in the stored form.
    pub(crate) fn raws_in(&self, stored: bool) -> Vec<BasicValueEnum<'ctx>> {
        if stored && self.imaginary().is_none() { vec![self.stored_lanes().raw()] } else { self.raws() }
    }

    /// Inverse of [`Value::raws`].
    pub fn from_raws(emitter: &'e Emitter<'ctx>, ty: ElementType, raws: &[BasicValueEnum<'ctx>]) -> Self {
        match raws {
            [real, imaginary] => Value::complex(ty, emitter.lanes(*real), emitter.lanes(*imaginary)),
            [lanes, ..] => Value::new(ty, emitter.lanes(*lanes)),
            [] => {
                emitter.fail(Error::internal("a value without parts"));
                let zero = emitter.lane_type(computed_scalar(ty), 1).const_zero();
                Value::new(ty, emitter.lanes(zero))
            }
        }
    }
}
