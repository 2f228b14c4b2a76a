//! Tests of the text form: grammar, errors, and round trips of random modules, of XLA's modules and of the corpus.

mod corpus;
mod errors;
mod grammar;
mod of_xla;
mod property;
