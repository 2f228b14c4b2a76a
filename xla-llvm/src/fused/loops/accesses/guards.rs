//! Guards around the element that an analysis visits.

/// Guards around the element that is visited, as the numbers of lanes of their masks.
#[derive(Clone, Copy, Default)]
pub(super) struct Guards {
    /// Innermost branch around the element.
    pub branch: Option<u32>,
    /// Conditions inside of the branch, together with the branch.
    pub condition: Option<u32>,
}

impl Guards {
    /// Whether every lane needs the element.
    pub fn is_empty(self) -> bool {
        self.width().is_none()
    }

    /// Returns the number of lanes of the mask of all guards.
    pub fn width(self) -> Option<u32> {
        self.condition.or(self.branch)
    }

    /// Returns the guards in a branch for lanes under a mask.
    pub fn in_branch(self, lanes: u32) -> Guards {
        Guards { branch: self.width().max(Some(lanes)), condition: None }
    }

    /// Returns the guards of an element that has an additional condition, if any.
    pub fn and(self, condition: Option<u32>) -> Guards {
        if condition.is_none() { self } else { Guards { condition: self.width().max(condition), ..self } }
    }

    /// Returns the guards of a value of `width` lanes: a uniform value is needed if any lane is.
    pub fn for_width(self, width: u32) -> Guards {
        match self.width() {
            Some(lanes) if width == 1 && lanes > 1 => Guards { condition: Some(1), ..self },
            _ => self,
        }
    }
}
