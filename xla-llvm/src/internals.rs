//! Parts of kernels and targets that the program in `tests` checks on their own. Not a stable interface.
//!
//! This library has no unit tests, so that Cargo compiles it once. Prefer a test of a kernel or a plan; export an item
//! here only if no small program shows its behavior.

pub use crate::fused::contraction::axes::Axis;
pub use crate::fused::scatter_plan::{Apart, BatchAxis, Component, WindowAxis, run};
pub use crate::fused::simt::scatter::block_copies::BlockCopies;
pub use crate::fused::tuning::fft::MAX_PRIME;
pub use crate::fused::vector::fft::code::Along;
pub use crate::fused::vector::fft::radices::{Radices, Vectors, is_smooth};
pub use crate::target::names::{NAMES, Names};
pub use crate::target::triple::Triple;

/// Threads that run LLVM.
pub mod own_thread {
    pub use crate::own_thread::{CODE_STACK, fatal_error, run};
}

/// Features of x86 processors.
pub mod x86 {
    pub use crate::target::x86::{AVX_STATE, AVX512_STATE, FEATURES, FEATURES_OF, Feature, OF_ALL, features};
}
