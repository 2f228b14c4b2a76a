//! Parallelization: operations split into parts that run side by side or cost less, after simplification.

mod split_reductions;
mod split_windows;

pub use split_reductions::SplitReductions;
pub use split_windows::SplitWindows;
