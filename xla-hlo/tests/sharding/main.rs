//! Tests of the axis algebra and of sharding rules.

mod algebra;
mod properties;
mod rules;
