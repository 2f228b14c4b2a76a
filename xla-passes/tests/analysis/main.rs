//! Analyses and views of modules.

mod cost;
mod effects;
mod view;
