//! Operations in parts that run side by side or cost less, after simplification, which would put them together again.

mod split_reductions;
mod split_windows;

pub use split_reductions::SplitReductions;
pub use split_windows::SplitWindows;
