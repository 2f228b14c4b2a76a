//! Run-time values of a kernel's symbols, arrays and guards.

use inkwell::values::PointerValue;
use xla_hlo::ArrayShape;

use crate::lanes::Lanes;

/// Run-time value of a symbol, a 64-bit integer.
#[derive(Clone, Copy)]
pub(crate) enum SymbolValue<'e, 'ctx> {
    /// One number for all lanes.
    Uniform(Lanes<'e, 'ctx>),
    /// `base + lane number`; lanes outside of the mask do not exist.
    Lane { base: Lanes<'e, 'ctx>, width: u32, mask: Option<Lanes<'e, 'ctx>> },
    /// One number per lane; the mask is inherited from the lane symbol that it was computed from.
    Varying { lanes: Lanes<'e, 'ctx>, mask: Option<Lanes<'e, 'ctx>> },
}

/// Array in memory that holds an instruction's value.
#[derive(Clone)]
pub(crate) struct Source<'ctx> {
    pub(crate) base: PointerValue<'ctx>,
    pub(crate) shape: ArrayShape,
}

/// Mask of the lanes that need a value; other lanes must not access memory.
#[derive(Clone, Copy)]
pub(crate) struct Guard<'e, 'ctx> {
    pub(crate) mask: Lanes<'e, 'ctx>,
    /// Level of the code that computes the mask.
    pub(crate) level: usize,
}

/// Number of a guard, for use in keys; 0 means no guard.
pub(crate) type GuardId = usize;
