//! Attention of few queries: threads multiply, since keys and values are all there is to wait for.
//!
//! ```text
//! plan.rs     which kernels these are, how many threads have a key, the parts of the keys
//! emit.rs     the functions of both launches
//! turn.rs     a group's loop over keys
//! combine.rs  the softmaxes of groups, of warps and of parts become one
//! ```
//!
//! A group of threads has a key and its value at a time, and each of them as many of their elements as one access
//! reads. Groups have other keys of the same head, and so do blocks where heads are few (Flash-Decoding, Dao, Haziza,
//! Massa, Sizov, 2023): a second launch combines what these found, in an order that depends on nothing but the program.
//! This is what a language model does for each new token.

mod combine;
mod emit;
pub(crate) mod plan;
mod turn;
