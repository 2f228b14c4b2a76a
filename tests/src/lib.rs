//! Conformance kit: random and real programs whose results every backend must agree on.
#![warn(missing_docs)]

pub mod agreement;
mod arguments;
#[cfg(doctest)]
mod book;
pub mod campaign;
pub mod conformance;
pub mod corpus;
pub mod coverage;
pub mod cross;
mod data;
pub mod differential;
pub mod each_pass;
pub mod generate;
pub mod grid_programs;
pub mod isolated;
pub mod launches;
pub mod multi_device;
pub mod program;
pub mod reference;
pub mod rounding;
pub mod shrink;
pub mod worker;
