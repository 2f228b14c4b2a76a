//! Tests of analyses and views of modules.

mod cost;
mod effects;
mod view;
