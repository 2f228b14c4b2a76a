//! Turns programs on global values into programs of each device, where no value has to be partitioned: [`localize`].
//!
//! ```text
//! parameter, sharded ─> global to local ─> manual computation ─> local to global ─> result, sharded
//!        part of a parameter ───────────> manual computation ──────────> part of a result
//! ```

mod entry;
mod place;
mod rewrite;

pub use entry::{Localized, localize};
