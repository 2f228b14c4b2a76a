//! Attention with few queries: threads multiply without tensor cores, because the kernel is bound by the bandwidth of
//! reading keys and values.
//!
//! ```text
//! plan.rs       kernels with few queries, the threads of a key, the split of the keys
//! emit.rs       the functions of both launches
//! key_group.rs  a group's loop over keys
//! combine.rs    combination of the softmaxes of groups, warps and parts
//! ```
//!
//! A thread group processes one key and its value at a time; each thread holds the elements that one access reads.
//! Groups have different keys of the same head. If there are few heads, so have blocks (Flash-Decoding, Dao, Haziza,
//! Massa, Sizov, 2023), and a second launch combines their results in a deterministic order. Language models run this
//! kernel for each new token.

mod combine;
mod emit;
mod key_group;
pub(crate) mod plan;
