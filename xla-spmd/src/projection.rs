//! Projection of a sharding to the factors of a rule, and back.

use xla_hlo::sdy::{MeshPart, ResolvedDim, ResolvedSharding, ShardingRule, TensorFactors, gcd, push_part};

/// Axes along one factor of one array.
#[derive(Clone, Debug, Default)]
pub struct FactorAxes {
    /// Axes that split the factor, major first.
    pub axes: Vec<MeshPart>,
    /// Axes of the dimension that fit neither this factor nor, therefore, any that is minor to it.
    pub overflow: Vec<MeshPart>,
    /// Whether no axis may be added.
    pub is_closed: bool,
    /// Whether the factor is the last one of its dimension. Only such a factor may be split unevenly.
    pub is_minor_most: bool,
}

/// Sharding of one array by factor.
#[derive(Clone, Debug)]
pub struct Projection {
    /// Axes of each factor; `None` for factors that the array does not have.
    pub factors: Vec<Option<FactorAxes>>,
    /// Axes along which the array must stay replicated.
    pub replicated: Vec<MeshPart>,
    /// Axes along which the array is not reduced yet.
    pub unreduced: Vec<MeshPart>,
}

impl Projection {
    /// Projects a sharding; an array without one is open in all dimensions.
    pub fn new(mapping: &TensorFactors, sharding: Option<&ResolvedSharding>, rule: &ShardingRule) -> Projection {
        let mut factors = vec![None; rule.factors.len()];
        for (d, list) in mapping.iter().enumerate() {
            let stated = sharding.and_then(|sharding| sharding.dims.get(d));
            project_dim(&mut factors, list, stated, rule);
        }
        Projection {
            factors,
            replicated: sharding.map_or(Vec::new(), |sharding| sharding.replicated.clone()),
            unreduced: sharding.map_or(Vec::new(), |sharding| sharding.unreduced.clone()),
        }
    }

    /// Returns the sharding of the array: the axes of each dimension's factors up to the first that is not fully split,
    /// since the next ones would split it in strides. `old` is the sharding before.
    pub fn sharding(
        &self,
        mapping: &TensorFactors,
        rule: &ShardingRule,
        old: Option<&ResolvedSharding>,
    ) -> ResolvedSharding {
        let dim = |list: &Vec<usize>| {
            let mut dim = ResolvedDim { is_open: true, ..ResolvedDim::default() };
            for (&factor, axes) in list.iter().filter_map(|f| Some((f, self.factors[*f].as_ref()?))) {
                dim.is_open &= !axes.is_closed;
                let parts: usize = axes.axes.iter().map(|part| part.size).product();
                push_all(&mut dim.axes, &axes.axes);
                if !axes.overflow.is_empty() {
                    push_all(&mut dim.axes, &axes.overflow);
                    break;
                }
                if parts < rule.factors[factor].size {
                    break;
                }
            }
            dim
        };
        ResolvedSharding {
            dims: mapping.iter().map(dim).collect(),
            replicated: self.replicated.clone(),
            unreduced: self.unreduced.clone(),
            reduction: old.map_or_else(Default::default, |old| old.reduction),
        }
    }
}

/// Appends axes; the first may continue the last one that is there.
fn push_all(to: &mut Vec<MeshPart>, axes: &[MeshPart]) {
    if let Some((&first, rest)) = axes.split_first() {
        push_part(to, first);
        to.extend(rest);
    }
}

/// Distributes the axes of a dimension over its factors, major first. A factor that is not the last one takes axes, or
/// parts of axes, while they divide the rest of it.
fn project_dim(factors: &mut [Option<FactorAxes>], list: &[usize], stated: Option<&ResolvedDim>, rule: &ShardingRule) {
    let mut rest: Vec<MeshPart> = stated.map_or(Vec::new(), |dim| dim.axes.clone());
    rest.reverse();
    let is_closed = stated.is_some_and(|dim| !dim.is_open);
    for (i, &factor) in list.iter().enumerate() {
        let axes = factors[factor].insert(FactorAxes { is_closed, ..FactorAxes::default() });
        axes.is_minor_most = i + 1 == list.len();
        if axes.is_minor_most {
            rest.drain(..).rev().for_each(|part| push_part(&mut axes.axes, part));
            break;
        }
        let mut size = rule.factors[factor].size;
        while let Some(&part) = rest.last() {
            let common = gcd(size, part.size);
            if common == 1 && part.size != 1 {
                break;
            }
            rest.pop();
            let (taken, left) = match part.split(common) {
                Some((taken, left)) => (taken, Some(left)),
                None => (part, None),
            };
            rest.extend(left);
            size /= taken.size;
            axes.axes.push(taken);
        }
        if size > 1 && !rest.is_empty() {
            rest.drain(..).rev().for_each(|part| push_part(&mut axes.overflow, part));
            if let Some(&next) = list.get(i + 1) {
                let is_minor_most = i + 2 == list.len();
                factors[next] = Some(FactorAxes { is_closed: true, is_minor_most, ..FactorAxes::default() });
            }
            break;
        }
    }
}
