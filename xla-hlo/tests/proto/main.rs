//! Tests of the protobuf form: special cases, errors, and round trips of the corpus.

mod corpus;
mod errors;
mod forms;
