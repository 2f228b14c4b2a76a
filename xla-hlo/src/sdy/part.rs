//! Axis algebra: parts of mesh axes, their relations, splits and merges.

/// Axis of a mesh, or a part of one, resolved against its mesh.
///
/// View the axis as `[before, size, rest]`, major first: the part is the dimension in the middle. It divides the axis
/// at two cuts, `before` and [`MeshPart::end`]. The whole axis has `before == 1` and the size of the axis. Parts are
/// ordered by axis, then by position in the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeshPart {
    /// Index of the axis in [`Mesh::axes`](super::Mesh::axes).
    pub axis: usize,
    /// Product of the sizes of all outer parts.
    pub before: usize,
    /// Number of devices along the part.
    pub size: usize,
}

impl MeshPart {
    /// Returns the product of the sizes of the outer parts and of this one.
    pub fn end(self) -> usize {
        self.before * self.size
    }

    /// Whether the position along `self` determines the position along `other`.
    pub fn contains(self, other: MeshPart) -> bool {
        self.axis == other.axis
            && self.before <= other.before
            && other.before.is_multiple_of(self.before)
            && self.end() >= other.end()
            && self.end().is_multiple_of(other.end())
    }

    /// Whether `self` is an outer part of `other`, or equal to it.
    pub fn is_prefix_of(self, other: MeshPart) -> bool {
        self.before == other.before && other.contains(self)
    }

    /// Whether `self` is an inner part of `other`, or equal to it.
    pub fn is_suffix_of(self, other: MeshPart) -> bool {
        self.end() == other.end() && other.contains(self)
    }

    /// Whether the two parts share a part of their axis.
    pub fn overlaps(self, other: MeshPart) -> bool {
        self.axis == other.axis && self.before < other.end() && other.before < self.end()
    }

    /// Whether one mesh can be divided at the cuts of both parts: each cut divides the next larger one.
    pub fn can_coexist(self, other: MeshPart) -> bool {
        if self.axis != other.axis {
            return true;
        }
        let mut cuts = [self.before, self.end(), other.before, other.end()];
        cuts.sort_unstable();
        cuts.windows(2).all(|pair| pair[1].is_multiple_of(pair[0]))
    }

    /// Returns the part that both have in common; `None` if they do not overlap or cannot coexist.
    pub fn overlap(self, other: MeshPart) -> Option<MeshPart> {
        if !self.overlaps(other) || !self.can_coexist(other) {
            return None;
        }
        Some(between(self.axis, self.before.max(other.before), self.end().min(other.end())))
    }

    /// Returns the longest prefix that does not overlap `other`; `None` if that is empty, or if the two cannot coexist.
    pub fn prefix_without(self, other: MeshPart) -> Option<MeshPart> {
        if !self.can_coexist(other) {
            return None;
        }
        if !self.overlaps(other) {
            return Some(self);
        }
        (self.before < other.before).then(|| between(self.axis, self.before, other.before))
    }

    /// Returns the longest prefix that overlaps none of `others`.
    pub fn prefix_without_all(self, others: &[MeshPart]) -> Option<MeshPart> {
        others.iter().try_fold(self, |part, &other| part.prefix_without(other))
    }

    /// Splits into an outer part of size `outer` and the rest; `None` unless both are proper parts.
    pub fn split(self, outer: usize) -> Option<(MeshPart, MeshPart)> {
        let is_proper = outer > 1 && outer < self.size && self.size.is_multiple_of(outer);
        let first = MeshPart { size: outer, ..self };
        is_proper.then(|| (first, between(self.axis, first.end(), self.end())))
    }

    /// Merges with the part that follows directly inside; `None` if `inner` is another one.
    pub fn merge(self, inner: MeshPart) -> Option<MeshPart> {
        let is_next = self.axis == inner.axis && self.end() == inner.before;
        is_next.then(|| between(self.axis, self.before, inner.end()))
    }
}

fn between(axis: usize, before: usize, end: usize) -> MeshPart {
    MeshPart { axis, before, size: end / before }
}

/// Appends a part to a list, major first. Merges it with the last part if the two are neighbours.
pub fn push_part(parts: &mut Vec<MeshPart>, part: MeshPart) {
    if let Some(merged) = parts.last().and_then(|last| last.merge(part)) {
        parts.pop();
        parts.push(merged);
    } else {
        parts.push(part);
    }
}

/// Returns the greatest common divisor of two numbers; the other one if one is 0.
pub fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
