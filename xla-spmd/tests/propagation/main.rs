//! Tests of propagation.

mod cases;
mod oracle;
