//! Tests with programs of the corpus, random programs, and inputs that once failed: all platforms agree, and nothing
//! panics.

mod corpus;
mod differential;
mod fuzz_inputs;
mod multi_device;
mod mutations;
mod regressions;
mod text;
