//! Reshape: copies the elements in row-major order; the DMA unit addresses both arrays by linear index.

use xla_hlo::Result;
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use crate::device::{Coordinate, LANES, Program, TILE_COLUMNS, View};

/// Copies tiles of consecutive elements.
pub(super) fn lower(cx: &LoweringContext<'_>) -> Result<Option<Program>> {
    let mut b = ProgramBuilder::new(cx)?;
    let (from, to) = (b.tensor(0), b.tensor(1));
    if from.element_type() != to.element_type() || from.element_count() != to.element_count() {
        return Ok(None);
    }
    let place = Coordinate::of(b.begin_loop(b.tensor(0).element_count(), LANES));
    let place = View::Flat(place.per_row(TILE_COLUMNS as i64).per_column(1));
    let tile = b.load_view(0, place.clone());
    b.store_view(tile, 1, place);
    b.end_loop();
    Ok(Some(b.finish()))
}
