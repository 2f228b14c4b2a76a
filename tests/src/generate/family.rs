//! Families of programs, by their most frequent operations.

/// Family of programs, by its most frequent operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Elementwise operations, with every element type.
    Elementwise,
    /// Operations that move elements.
    Movement,
    /// Reductions over dimensions.
    Reduction,
    /// Reductions over windows.
    Window,
    /// Dot products and convolutions.
    Dot,
    /// Gather and scatter.
    Indexing,
    /// Loops, branches, calls.
    Control,
    /// All operations.
    Mixed,
    /// Arrays large enough to use several threads.
    Large,
    /// Rare operations: dynamic sizes, collectives, tokens, random bits, custom calls.
    Rare,
    /// Idioms of machine learning, with sizes around vector lengths, and operations before and after them.
    Idioms,
}

impl Family {
    /// All families.
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

    /// Returns the name in lower case.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns the family with a name.
    pub fn from_name(name: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.name() == name)
    }
}
