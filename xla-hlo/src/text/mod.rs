//! The text form of modules: reads what XLA prints, prints what XLA reads.

mod attributes;

pub use attributes::{AttributeCursor, AttributeReader, AttributeValue, AttributeWriter};
