//! A backend of a vendor, copied from `backend-template`: `cargo xtask new-backend`, `remove-backend`, `vendor-todo`.
//!
//! ```text
//! name       the name, and renaming of text           copy       a crate under another name
//! manifest   a manifest without its workspace          register   the lines of the workspace that list the backends
//! mark       the mark of a copy                        example    the operation of the book's chapter
//! todo       the places that a vendor must change
//! ```

pub mod copy;
pub mod example;
pub mod manifest;
pub mod mark;
pub mod name;
pub mod register;
pub mod todo;
