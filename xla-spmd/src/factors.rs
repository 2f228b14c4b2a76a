//! One step of propagation: axes move along the factors of one operation.

use xla_hlo::sdy::{Direction, MeshPart, ShardingRule, gcd};

use crate::projection::{FactorAxes, Projection};

/// Directions of propagation along a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directions {
    /// From operands to results.
    pub forward: bool,
    /// From results to operands.
    pub backward: bool,
}

impl From<Direction> for Directions {
    fn from(direction: Direction) -> Directions {
        match direction {
            Direction::None => Directions::NONE,
            Direction::Forward => Directions::FORWARD,
            Direction::Backward => Directions::BACKWARD,
            Direction::Both => Directions::BOTH,
        }
    }
}

impl Directions {
    pub const NONE: Directions = Directions { forward: false, backward: false };
    pub const FORWARD: Directions = Directions { forward: true, backward: false };
    pub const BACKWARD: Directions = Directions { forward: false, backward: true };
    pub const BOTH: Directions = Directions { forward: true, backward: true };

    pub fn union(self, other: Directions) -> Directions {
        Directions { forward: self.forward || other.forward, backward: self.backward || other.backward }
    }
}

/// Whether a list of axes is a prefix of another; the last axis may be a prefix of its counterpart.
fn is_prefix(first: &[MeshPart], second: &[MeshPart]) -> bool {
    let Some((last, rest)) = first.split_last() else { return true };
    first.len() <= second.len() && *rest == second[..rest.len()] && last.is_prefix_of(second[rest.len()])
}

fn is_strict_prefix(first: &[MeshPart], second: &[MeshPart]) -> bool {
    first != second && is_prefix(first, second)
}

/// Projections of all arrays of an operation: operands, then results.
pub struct Arrays {
    pub projections: Vec<Projection>,
    /// Number of operands.
    pub operands: usize,
}

/// Axes that all arrays agree on along a factor: lists merge as long as one is a prefix of the other.
struct Agreement {
    axes: Vec<MeshPart>,
    can_expand: bool,
}

impl Agreement {
    fn add(&mut self, new: &[MeshPart]) {
        let old = std::mem::take(&mut self.axes);
        let common = old.len().min(new.len());
        for (i, (&a, &b)) in old.iter().zip(new).enumerate() {
            let (is_last_old, is_last_new) = (i + 1 == old.len(), i + 1 == new.len());
            if a == b {
                self.axes.push(a);
                continue;
            }
            // Different axes at one place: at most a common prefix remains, unless the shorter list ends here.
            let (kept, is_conflict) = if a.axis == b.axis && b.is_prefix_of(a) {
                if is_last_new { (Some(a), false) } else { (Some(b), true) }
            } else if a.axis == b.axis && a.is_prefix_of(b) {
                if self.can_expand && is_last_old { (Some(b), false) } else { (Some(a), true) }
            } else {
                (None, true)
            };
            self.axes.extend(kept);
            if is_conflict {
                self.can_expand = false;
                return;
            }
        }
        self.axes.extend(&old[common..]);
        if self.can_expand {
            self.axes.extend(&new[common..]);
        }
    }
}

impl Arrays {
    /// Moves axes along all factors. Returns for each array whether it may have changed.
    ///
    /// Each array takes the axes that fit it, although other arrays may have conflicts.
    pub fn propagate(&mut self, rule: &ShardingRule, direction: impl Fn(usize) -> Directions) -> Vec<bool> {
        let mut changed = vec![false; self.projections.len()];
        let agreed: Vec<Vec<MeshPart>> =
            (0..rule.factors.len()).map(|factor| self.agreed(factor, direction(factor))).collect();
        if agreed.iter().all(Vec::is_empty) {
            return changed;
        }
        let order = self.order(rule, &agreed);
        let results = self.operands..self.projections.len();
        for array in results.clone().chain(0..self.operands) {
            for &factor in &order {
                let Some(mut axes) = self.accepted(array, factor, rule, &agreed[factor]) else { continue };
                if rule.is_elementwise && array < self.operands {
                    // Nothing moves sideways past a result that did not accept it.
                    for result in results.clone() {
                        let of_result = self.projections[result].factors[factor].as_ref();
                        if let Some(shorter) = of_result.filter(|f| is_strict_prefix(&f.axes, &axes)) {
                            axes = shorter.axes.clone();
                        }
                    }
                }
                if let Some(own) = self.projections[array].factors[factor].as_mut()
                    && is_strict_prefix(&own.axes, &axes)
                {
                    own.axes = axes;
                    changed[array] = true;
                }
            }
        }
        changed
    }

    /// Axes of a factor that all arrays agree on, conflicts with other factors aside.
    fn agreed(&self, factor: usize, direction: Directions) -> Vec<MeshPart> {
        if direction == Directions::NONE {
            return Vec::new();
        }
        let (operands, results) = self.projections.split_at(self.operands);
        let (first, second) = if direction.forward { (operands, results) } else { (results, operands) };
        let mut agreement = Agreement { axes: Vec::new(), can_expand: true };
        let of = |projection: &Projection| projection.factors[factor].as_ref().map(|f| f.axes.clone());
        first.iter().filter_map(of).for_each(|axes| agreement.add(&axes));
        agreement.can_expand &= direction == Directions::BOTH;
        second.iter().filter_map(of).for_each(|axes| agreement.add(&axes));
        agreement.axes
    }

    /// Order of the factors, which decides conflicts between them: larger source array first, for elementwise
    /// operations the more split factor, then smaller number of the source, then smaller number of the factor.
    fn order(&self, rule: &ShardingRule, agreed: &[Vec<MeshPart>]) -> Vec<usize> {
        // Size and number of each factor's source: the largest array whose axes begin with the agreed ones.
        let mut sources = vec![(-1i128, -1i64); rule.factors.len()];
        for (number, projection) in self.projections.iter().enumerate() {
            let present = |factor: &usize| projection.factors[*factor].is_some();
            let size = (0..rule.factors.len()).filter(present).map(|f| rule.factors[f].size as i128);
            let size = size.fold(1i128, i128::saturating_mul);
            for (factor, source) in sources.iter_mut().enumerate() {
                let axes = projection.factors[factor].as_ref().map(|f| &f.axes);
                let is_source = !agreed[factor].is_empty() && axes.is_some_and(|axes| is_prefix(&agreed[factor], axes));
                if is_source && size > source.0 {
                    *source = (size, number as i64);
                }
            }
        }
        let split = |factor: usize| -> i128 {
            let parts = agreed[factor].iter().map(|part| part.size as i128).product();
            if rule.is_elementwise { parts } else { 0 }
        };
        let mut order: Vec<usize> = (0..rule.factors.len()).collect();
        order.sort_by_key(|&factor| (-sources[factor].0, -split(factor), sources[factor].1, factor));
        order
    }

    /// Returns the longer list of axes that an array can take along a factor; `None` if there is none.
    fn accepted(&self, array: usize, factor: usize, rule: &ShardingRule, agreed: &[MeshPart]) -> Option<Vec<MeshPart>> {
        let projection = &self.projections[array];
        let own = projection.factors[factor].as_ref()?;
        let size = rule.factors[factor].size;
        let axes = truncated(agreed, |part, before| within_factor(part, projection, own, before, size));
        if !is_strict_prefix(&own.axes, &axes) {
            return None;
        }
        let others = || projection.factors.iter().enumerate().filter(|(f, _)| *f != factor);
        let axes = truncated(&axes, |part, _| {
            others()
                .filter_map(|(_, other)| other.as_ref())
                .try_fold(part, |part, other| part.prefix_without_all(&other.overflow)?.prefix_without_all(&other.axes))
        });
        (!axes.is_empty()).then_some(axes)
    }
}

/// Cuts a list at the first axis that `fit` shortens or refuses. `fit` takes an axis and the number of parts before it.
fn truncated(axes: &[MeshPart], fit: impl Fn(MeshPart, usize) -> Option<MeshPart>) -> Vec<MeshPart> {
    let (mut kept, mut before) = (Vec::new(), 1);
    for &part in axes {
        let Some(fitting) = fit(part, before) else { break };
        kept.push(fitting);
        if fitting != part {
            break;
        }
        before *= part.size;
    }
    kept
}

/// Returns the prefix of an axis that an array can have along a factor, other factors aside. `before` is the number of
/// parts by the axes before it.
fn within_factor(
    part: MeshPart,
    projection: &Projection,
    own: &FactorAxes,
    before: usize,
    size: usize,
) -> Option<MeshPart> {
    let part = part.prefix_without_all(&projection.replicated)?.prefix_without_all(&projection.unreduced)?;
    if own.axes.iter().any(|axis| axis.contains(part)) {
        return Some(part);
    }
    if !own.is_closed && own.overflow.is_empty() {
        if own.is_minor_most {
            return Some(part);
        }
        if size.is_multiple_of(before) {
            let common = gcd(size / before, part.size);
            if common != 1 || part.size == 1 {
                return Some(MeshPart { size: common, ..part });
            }
        }
    }
    own.axes.last().copied().filter(|last| last.is_prefix_of(part))
}
