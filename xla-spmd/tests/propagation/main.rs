//! Tests of propagation.

mod oracle;
