//! Operation in the form that the operation families lower: name, attributes, operands, results and regions.

use xla_hlo::{Error, InstrId, Result, Shape};

use super::attributes::Attributes;
use super::types::packed_shape;
use crate::ir::{Module, OpId, RegionId};

/// Operation whose operands are already lowered to instructions.
pub(super) struct Call<'s> {
    /// Name without dialect and version, such as `add`.
    pub name: &'s str,
    pub attributes: Attributes<'s>,
    pub operands: Vec<InstrId>,
    /// Shapes of the results.
    pub results: Vec<Shape>,
    pub regions: &'s [RegionId],
    pub op: OpId,
    /// Indices of the remaining operands, if some were removed.
    pub kept_operands: Option<Vec<usize>>,
}

impl Call<'_> {
    /// Returns the shape of the combined results: a tuple if there are several.
    pub fn shape(&self) -> Shape {
        packed_shape(self.results.clone())
    }

    /// Returns the operands; an error unless there are exactly `N`.
    pub fn exactly<const N: usize>(&self) -> Result<[InstrId; N]> {
        <[InstrId; N]>::try_from(&self.operands[..])
            .map_err(|_| Error::invalid_argument(format!("{N} operands are needed, not {}", self.operands.len())))
    }

    /// Returns the regions; an error unless there are exactly `N`.
    pub fn regions<const N: usize>(&self) -> Result<[RegionId; N]> {
        <[RegionId; N]>::try_from(self.regions)
            .map_err(|_| Error::invalid_argument(format!("{N} regions are needed, not {}", self.regions.len())))
    }
}

/// Returns the dialect of an operation, and its name without dialect and version.
pub(super) fn stem(module: &Module, op: OpId) -> (&str, &str) {
    let name = std::str::from_utf8(&module.strings[module.operations[op].name]).unwrap_or_default();
    let (dialect, own) = name.split_once('.').unwrap_or(("", name));
    match own.rsplit_once("_v") {
        Some((stem, version)) if dialect == "vhlo" && version.bytes().all(|b| b.is_ascii_digit()) => (dialect, stem),
        _ => (dialect, own),
    }
}
