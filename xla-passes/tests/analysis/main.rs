//! Tests of analyses and views of modules.

mod cost;
mod effects;
mod element_order;
mod reachability;
mod trip_count;
mod view;
mod view_layout;
