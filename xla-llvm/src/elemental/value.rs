//! One element, in lanes.

use inkwell::values::BasicValueEnum;
use xla_hlo::{ElementKind, ElementType};

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// An element of some type in as many lanes as the code works on; see [`crate::elemental`] for what the lanes are.
#[derive(Clone, Copy)]
pub struct Value<'e, 'ctx> {
    ty: ElementType,
    lanes: Lanes<'e, 'ctx>,
    imaginary: Option<Lanes<'e, 'ctx>>,
}

/// The lanes that a value of that type computes with; of one part for complex types.
pub(crate) fn lane_scalar(ty: ElementType) -> Scalar {
    match ty.kind() {
        ElementKind::Pred => Scalar::Int(1),
        ElementKind::Signed | ElementKind::Unsigned => Scalar::Int(ty.byte_width() as u32 * 8),
        ElementKind::Float | ElementKind::Complex => match ty.real_part() {
            ElementType::F64 => Scalar::F64,
            _ => Scalar::F32,
        },
    }
}

impl<'e, 'ctx> Value<'e, 'ctx> {
    /// A real value, whose lanes are of the type's kind.
    pub fn new(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        Value { ty, lanes, imaginary: None }
    }

    /// A complex value.
    pub fn complex(ty: ElementType, real: Lanes<'e, 'ctx>, imaginary: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        Value { ty, lanes: real, imaginary: Some(imaginary) }
    }

    /// The element type.
    pub fn element_type(&self) -> ElementType {
        self.ty
    }

    /// The lanes of a real value, or of the real part.
    pub fn lanes(&self) -> Lanes<'e, 'ctx> {
        self.lanes
    }

    /// The imaginary part of a complex value.
    pub fn imaginary(&self) -> Option<Lanes<'e, 'ctx>> {
        self.imaginary
    }

    /// How many lanes.
    pub fn width(&self) -> u32 {
        self.lanes.width()
    }

    /// The same in all parts.
    pub(crate) fn map(self, f: impl Fn(Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>) -> Self {
        Value { ty: self.ty, lanes: f(self.lanes), imaginary: self.imaginary.map(f) }
    }

    /// The same lanes under another type of the same lanes.
    pub(crate) fn relabelled(self, ty: ElementType) -> Self {
        Value { ty, ..self }
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

    /// Lanes in the opposite order.
    #[must_use]
    pub fn reversed(self) -> Self {
        self.map(Lanes::reversed)
    }

    /// LLVM's values, one for each part.
    pub fn raws(&self) -> Vec<BasicValueEnum<'ctx>> {
        std::iter::once(self.lanes).chain(self.imaginary).map(Lanes::raw).collect()
    }

    /// Inverse of [`Value::raws`].
    pub fn from_raws(emitter: &'e Emitter<'ctx>, ty: ElementType, raws: &[BasicValueEnum<'ctx>]) -> Self {
        match raws {
            [real, imaginary] => Value::complex(ty, emitter.lanes(*real), emitter.lanes(*imaginary)),
            [lanes, ..] => Value::new(ty, emitter.lanes(*lanes)),
            [] => {
                emitter.fail(xla_hlo::Error::internal("a value without parts"));
                let zero = emitter.lane_type(lane_scalar(ty), 1).const_zero();
                Value::new(ty, emitter.lanes(zero))
            }
        }
    }
}
