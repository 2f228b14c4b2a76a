//! Views of a module: a graph for Graphviz, and an HTML page.

mod dot;
mod html;
mod label;
mod layout;

pub use dot::dot;
pub use html::html;
