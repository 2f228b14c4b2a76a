//! Layouts: makes every array row-major, expands layout changes into data movement, and finally applies the target's
//! tiles.

mod bitcast;
mod border;
mod calls;
mod normalize_layouts;
mod tile_layouts;

pub use normalize_layouts::NormalizeLayouts;
pub use tile_layouts::TileLayouts;

use xla_hlo::{Module, ProgramShape};

/// Sets the header's layout.
fn set_header(module: &mut Module, layout: ProgramShape) {
    if module.attributes().entry_computation_layout.as_ref() != Some(&layout) {
        module.attributes_mut().entry_computation_layout = Some(layout);
    }
}

pub(crate) fn is_identity(permutation: &[usize]) -> bool {
    permutation.iter().enumerate().all(|(i, &d)| i == d)
}

pub(crate) fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
    inverse
}
