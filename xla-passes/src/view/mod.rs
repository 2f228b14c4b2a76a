//! Pictures of a module: a graph for Graphviz, and a page that shows it in a browser.

mod dot;
mod html;
mod label;
mod layout;

pub use dot::dot;
pub use html::html;
