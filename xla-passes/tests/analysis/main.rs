//! Analyses and views of modules.

mod cost;
mod view;
