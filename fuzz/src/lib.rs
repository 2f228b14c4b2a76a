//! The fuzz targets as functions.

mod targets;

pub use targets::*;
