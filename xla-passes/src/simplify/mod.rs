//! Simplification: passes that run to a fixpoint, and passes that run after them.

mod annotate_trip_counts;
pub(crate) mod assign_layouts;
pub(crate) mod common_subexpressions;
mod drop_zero_sized;
mod equal_state;
pub(crate) mod evaluation_budget;
pub(crate) mod fold_constants;
mod hoist_invariants;
mod merge_dots;
mod order_right_operands;
pub(crate) mod simplify_algebra;
mod simplify_conditionals;
mod simplify_loops;
mod simplify_sorts;
mod sink_slices;
mod solve_counting_loops;
mod unroll_loops;

pub use annotate_trip_counts::AnnotateTripCounts;
pub use assign_layouts::AssignLayouts;
pub use common_subexpressions::CommonSubexpressions;
pub use drop_zero_sized::DropZeroSized;
pub use fold_constants::FoldConstants;
pub use hoist_invariants::HoistInvariants;
pub use merge_dots::MergeDots;
pub use order_right_operands::OrderRightOperands;
pub use simplify_algebra::{SimplifyAlgebra, rule_names};
pub use simplify_conditionals::SimplifyConditionals;
pub use simplify_loops::SimplifyLoops;
pub use simplify_sorts::SimplifySorts;
pub use sink_slices::SinkSlices;
pub use solve_counting_loops::SolveCountingLoops;
pub use unroll_loops::UnrollLoops;
