//! Target-independent HLO passes and analyses.

pub mod alias;
pub mod buffers;
