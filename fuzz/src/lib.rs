//! Fuzz targets as functions, and the mutator of bytecode.

pub mod container;
mod stablehlo;
mod targets;

pub use stablehlo::*;
pub use targets::*;
