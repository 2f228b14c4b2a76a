//! Target-independent HLO passes and analyses.

pub mod alias;
pub mod buffers;
pub mod copy_insertion;
pub mod schedule;
