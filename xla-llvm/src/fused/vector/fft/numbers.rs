//! Element type of a transform, and the vectors of a target.

use super::code::{Along, Code};
use super::radices::Vectors;
use crate::emitter::Emitter;
use crate::lanes::Scalar;
use crate::target::Target;

/// Numbers that the elements consist of, on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub is_double: bool,
    /// Number of lanes of a register.
    pub width: u32,
    /// Number of these registers.
    pub registers: u32,
}

impl Numbers {
    pub fn new(is_double: bool, target: &Target) -> Numbers {
        let registers = target.abilities().registers;
        Numbers { is_double, width: target.lanes(if is_double { 64 } else { 32 }), registers }
    }

    pub fn scalar(self) -> Scalar {
        if self.is_double { Scalar::F64 } else { Scalar::F32 }
    }

    pub fn bytes(self) -> u64 {
        if self.is_double { 8 } else { 4 }
    }

    pub fn vectors(self, along: Along) -> Vectors {
        Vectors { width: self.width, registers: self.registers, along }
    }

    pub fn code<'e, 'ctx>(self, e: &'e Emitter<'ctx>, along: Along) -> Code<'e, 'ctx> {
        Code { e, scalar: self.scalar(), along, width: self.width }
    }
}
