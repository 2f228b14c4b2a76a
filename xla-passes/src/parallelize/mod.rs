//! Parallelization: splits operations into parts that run in parallel or cost less, after simplification.

mod split_reductions;
mod split_windows;

pub use split_reductions::SplitReductions;
pub use split_windows::SplitWindows;
