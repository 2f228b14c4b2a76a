//! Parts of passes and analyses that the programs in `tests` check on their own. Not a stable interface.
//!
//! This library has no unit tests, so that Cargo compiles it once. Prefer a test of a pass or an analysis; export an
//! item here only if no small program shows its behavior.

pub use crate::expand::expand_ffts::radices::{MAX_COMPOSITE, MAX_DIRECT, radices};
pub use crate::fuse::access::{ElementAccess, accesses};
pub use crate::fuse::order::{TopologicalOrder, is_element, predecessors};
pub use crate::simplify::assign_layouts::order::DimOrder;
pub use crate::simplify::common_subexpressions::{computations_equal, structure_hash};
pub use crate::simplify::evaluation_budget::EvaluationBudget;
pub use crate::simplify::simplify_algebra::dims::factor;

/// Packing of buffers, with the heuristics that it chooses from.
pub mod pack {
    pub use crate::buffers::pack::{
        Item, Lender, Lent, MAX_IMPROVED, MAX_QUADRATIC, Packing, by_size, lend, lend_and_pack, most_at_once, pack,
        pack_by_time, pack_in_order,
    };
}

/// Layered drawing of graphs.
pub mod layout {
    pub use crate::view::layout::{LayeredEdge, LayeredGraph, Layout, isotonic, layout};
}
