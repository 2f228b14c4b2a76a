//! Turns programs on global values into programs of each device, where no value has to be partitioned: [`localize`].
//!
//! ```text
//! parameter, sharded ─> global to local ─> manual computation ─> local to global ─> result, sharded
//!        part of a parameter ───────────> manual computation ──────────> part of a result
//!
//! computations, calls, tuples                                       rewrite.rs
//! boundaries of manual computations, constraints                    boundary.rs
//! loops, branches: splits of the state as a fixed point             control_flow.rs
//! bodies and branches that loops and branches share                 forms.rs
//! other operations on parts: dimensions that they keep, new form    factors.rs, parts.rs
//! all-gathers where splits cannot be kept                           gather.rs
//! relation of values to the original program                        place.rs
//! parameters whose shardings are open                               required.rs
//! ```

mod boundary;
mod control_flow;
mod entry;
mod factors;
mod forms;
mod gather;
mod parts;
mod place;
mod required;
mod rewrite;

pub use entry::{Localized, localize, localize_by_gathers};
