//! Sources with all their mutants. A mutant is a branch that a number chooses at run time, so one build serves all.
//! `cargo xtask mutants` lists the mutants, builds the sources and runs the tests.

mod places;
mod rewrite;

pub use rewrite::{Branch, Rewritten, rewrite, support};

/// A line and a column, both from 1.
pub type Place = (usize, usize);

/// One change of the sources.
pub struct Mutant {
    /// Number of the mutant in this run, from 1.
    pub id: u32,
    /// File, relative to the root.
    pub file: String,
    /// Line, column and description.
    pub name: String,
    pub genre: String,
    /// Text in place of the replaced one.
    pub replacement: String,
    /// First character of the replaced text.
    pub start: Place,
    /// Whether the mutant is in the sample. The others are built too: one build serves every sample.
    pub is_chosen: bool,
}

impl Mutant {
    /// Returns the package of the changed source: the first folder of its file.
    pub fn package(&self) -> &str {
        self.file.split('/').next().unwrap_or_default()
    }
}
