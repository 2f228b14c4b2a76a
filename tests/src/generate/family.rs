//! Families of programs, by the operations that they mostly have.

/// Families of programs, by their most frequent operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Operations on one element at a time, of every element type.
    Elementwise,
    /// Operations that move elements.
    Movement,
    /// Reductions over dimensions.
    Reduction,
    /// Reductions over windows.
    Window,
    /// Sums of products.
    Dot,
    /// Gather and scatter.
    Indexing,
    /// Loops, branches, calls.
    Control,
    /// All of it.
    Mixed,
    /// Arrays so large that they are worth several threads.
    Large,
    /// Rare operations: dynamic sizes, collectives, tokens, random bits, custom calls.
    Rare,
    /// Idioms of machine learning at shapes at the edges of vectors, with operations before and after them.
    Idioms,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 11] = [
        Family::Elementwise,
        Family::Movement,
        Family::Reduction,
        Family::Window,
        Family::Dot,
        Family::Indexing,
        Family::Control,
        Family::Mixed,
        Family::Large,
        Family::Rare,
        Family::Idioms,
    ];

    /// The name in lower case.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The family of that name.
    pub fn from_name(name: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.name() == name)
    }
}
