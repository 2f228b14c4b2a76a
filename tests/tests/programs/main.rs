//! Programs of the corpus, random programs and inputs that once failed: everybody agrees on them, nobody panics.

mod corpus;
mod differential;
mod fuzz_inputs;
mod mutations;
mod regressions;
mod text;
