//! Views of a module: a graph for Graphviz, and an HTML page.

mod dot;
mod html;
mod label;
pub(crate) mod layout;

pub use dot::dot;
pub use html::html;
