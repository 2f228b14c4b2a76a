//! The conformance kit.
pub mod corpus;
