//! Guards around the element that an analysis visits.

/// Guards around the element that is visited.
#[derive(Clone, Copy, Default)]
pub(super) struct Guards {
    /// Whether the element is in a branch.
    in_branch: bool,
    /// Whether a mask applies inside of the innermost branch.
    pub is_masked: bool,
}

impl Guards {
    /// Guards of an element in a branch, without a mask.
    pub const BRANCH: Guards = Guards { in_branch: true, is_masked: false };

    /// Whether every lane needs the element.
    pub fn is_empty(self) -> bool {
        !self.in_branch && !self.is_masked
    }

    /// Returns the guards of an element that may have an additional condition.
    pub fn and(self, is_masked: bool) -> Guards {
        Guards { is_masked: self.is_masked | is_masked, ..self }
    }

    /// Returns the guards without the mask.
    pub fn without_mask(self) -> Guards {
        Guards { is_masked: false, ..self }
    }
}
