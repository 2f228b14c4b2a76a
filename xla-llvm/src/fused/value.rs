//! Values of a kernel's symbols, arrays and guards while it runs.

use inkwell::values::PointerValue;
use xla_hlo::ArrayShape;

use crate::lanes::Lanes;

/// The number that a symbol stands for while running, a 64-bit integer.
#[derive(Clone, Copy)]
pub(crate) enum SymbolValue<'e, 'ctx> {
    /// The same in all lanes.
    Uniform(Lanes<'e, 'ctx>),
    /// `base + lane number`; lanes outside of the mask do not exist.
    Lane { base: Lanes<'e, 'ctx>, width: u32, mask: Option<Lanes<'e, 'ctx>> },
    /// Another number in each lane; lanes exist as those of the lane symbol it came from do.
    Varying { lanes: Lanes<'e, 'ctx>, mask: Option<Lanes<'e, 'ctx>> },
}

/// An array in memory that an instruction's value is read from.
#[derive(Clone)]
pub(crate) struct Source<'ctx> {
    pub(crate) base: PointerValue<'ctx>,
    pub(crate) shape: ArrayShape,
}

/// Lanes for which a value is wanted at all; others must not touch memory.
#[derive(Clone, Copy)]
pub(crate) struct Guard<'e, 'ctx> {
    pub(crate) mask: Lanes<'e, 'ctx>,
    /// The level that the mask is computed at.
    pub(crate) level: usize,
}

/// Names a guard in keys; 0 is none.
pub(crate) type GuardId = usize;
