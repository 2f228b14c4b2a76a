//! An operation as the families see it: its name, attributes, operands, results and regions.

use xla_hlo::{Error, InstrId, Result, Shape};

use super::attributes::Attributes;
use super::types::packed_shape;
use crate::ir::{Module, OpId, RegionId};

/// An operation whose operands are instructions.
pub(super) struct Call<'s> {
    /// Name without dialect and version: `add`.
    pub name: &'s str,
    pub attributes: Attributes<'s>,
    pub operands: Vec<InstrId>,
    /// Shapes of the results.
    pub results: Vec<Shape>,
    pub regions: &'s [RegionId],
    pub op: OpId,
    /// Numbers of the operands that are passed on, where some are not.
    pub kept_operands: Option<Vec<usize>>,
}

impl Call<'_> {
    /// The shape of all results: a tuple where there are several.
    pub fn shape(&self) -> Shape {
        packed_shape(self.results.clone())
    }

    /// The operands, as many as wanted.
    pub fn exactly<const N: usize>(&self) -> Result<[InstrId; N]> {
        <[InstrId; N]>::try_from(&self.operands[..])
            .map_err(|_| Error::invalid_argument(format!("{N} operands are needed, not {}", self.operands.len())))
    }

    /// The regions, as many as wanted.
    pub fn regions<const N: usize>(&self) -> Result<[RegionId; N]> {
        <[RegionId; N]>::try_from(self.regions)
            .map_err(|_| Error::invalid_argument(format!("{N} regions are needed, not {}", self.regions.len())))
    }
}

/// Dialect of an operation, and its name without dialect and version.
pub(super) fn stem(module: &Module, op: OpId) -> (&str, &str) {
    let name = std::str::from_utf8(&module.strings[module.operations[op].name]).unwrap_or_default();
    let (dialect, own) = name.split_once('.').unwrap_or(("", name));
    match own.rsplit_once("_v") {
        Some((stem, version)) if dialect == "vhlo" && version.bytes().all(|b| b.is_ascii_digit()) => (dialect, stem),
        _ => (dialect, own),
    }
}
