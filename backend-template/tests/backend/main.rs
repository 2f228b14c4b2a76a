//! The backend as a whole: lowerings against the reference evaluator, and the platform by its traits.

mod devices;
mod lowering;
mod platform;
mod streams;
mod support;
