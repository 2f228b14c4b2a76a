//! Factors of a reshape: the common divisions of the row-major order of its operand and its result.

use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule, gcd};

/// One of the two arrays, walked from its major end.
struct Side<'a> {
    dims: &'a [usize],
    /// Current dimension.
    at: usize,
    /// Product of the dimensions so far, the current one included once its first factor is asked for.
    elements: usize,
    /// Product of the factors so far; always divides `elements`.
    factors: usize,
}

impl Side<'_> {
    fn new(dims: &[usize]) -> Side<'_> {
        Side { dims, at: 0, elements: 1, factors: 1 }
    }

    fn is_at_end(&self) -> bool {
        self.at == self.dims.len()
    }

    /// Returns the part of the current dimension that has no factor yet.
    fn rest(&mut self) -> usize {
        if !self.is_at_end() && self.elements == self.factors {
            self.elements *= self.dims[self.at];
        }
        self.elements / self.factors
    }

    /// Whether the current dimension has size 1 and no factor.
    fn is_at_unit(&self) -> bool {
        self.dims.get(self.at) == Some(&1)
    }

    /// Takes a factor of the current dimension; moves on if that is used up. Returns the dimension.
    fn take(&mut self, factor: usize) -> usize {
        let at = self.at;
        self.factors *= factor;
        if self.factors == self.elements {
            self.at += 1;
        }
        at
    }

    /// Returns the next factor of a side whose product is `self.factors`, smaller than the other side's product. `gcd`
    /// is the greatest common divisor of the rests of both current dimensions.
    fn factor_towards(&self, rest: usize, other: usize, gcd: usize) -> usize {
        let missing = other / self.factors;
        if other.is_multiple_of(self.factors) && rest.is_multiple_of(missing) {
            // The products meet.
            missing
        } else if rest > gcd {
            // Leaves the common part for a factor of both.
            rest / gcd
        } else {
            rest
        }
    }
}

/// Returns the rule of a reshape; `None` for arrays without elements.
///
/// Walks both arrays from the major end. While the products of the factors so far are equal, the greatest common
/// divisor of the rests of the two current dimensions is a factor of both. If it is 1, each side takes factors of its
/// own until the products meet again. Dimensions of size 1 are factors of their own.
pub(super) fn rule(cx: &RuleContext<'_>) -> Option<ShardingRule> {
    let (mut operand, mut result) = (Side::new(cx.operand(0)), Side::new(cx.result(0)));
    if operand.dims.contains(&0) {
        return None;
    }
    let (mut builder, pass) = (RuleBuilder::new(cx), FactorKind::PassThrough);
    while !operand.is_at_end() || !result.is_at_end() {
        if operand.is_at_unit() {
            builder.add(1, pass, &[(0, operand.at)], &[]);
            operand.at += 1;
            continue;
        }
        if result.is_at_unit() {
            builder.add(1, pass, &[], &[(0, result.at)]);
            result.at += 1;
            continue;
        }
        let (of_operand, of_result) = (operand.rest(), result.rest());
        let gcd = gcd(of_operand, of_result);
        let mut take_operand = |operand: &mut Side<'_>, factor| {
            let d = operand.take(factor);
            builder.add(factor, pass, &[(0, d)], &[]);
        };
        if operand.factors == result.factors && gcd > 1 {
            let (from, to) = (operand.take(gcd), result.take(gcd));
            builder.add(gcd, pass, &[(0, from)], &[(0, to)]);
        } else if operand.factors == result.factors {
            take_operand(&mut operand, of_operand);
            builder.add(of_result, pass, &[], &[(0, result.take(of_result))]);
        } else if operand.factors < result.factors {
            let factor = operand.factor_towards(of_operand, result.factors, gcd);
            take_operand(&mut operand, factor);
        } else {
            let factor = result.factor_towards(of_result, operand.factors, gcd);
            builder.add(factor, pass, &[], &[(0, result.take(factor))]);
        }
    }
    Some(builder.finish())
}
