//! Loop plan of a kernel: dimensions split for reshapes, and merged if they are contiguous in memory.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use crate::fused::loops::affine::{AffineExpr, Index, SymbolId, row_major_strides};
use crate::fused::tuning::vector::LEAST_TILED;

/// Accesses of one iteration of a kernel, in terms of its variables' symbols.
#[derive(Default)]
pub(crate) struct Survey {
    /// Coordinates that are converted to numbers.
    pub uses: BTreeSet<AffineExpr>,
    /// Symbols that would have to be split by a factor for a division to be affine, in the order of the divisions.
    pub splits: Vec<(SymbolId, u64)>,
    /// Positions in memory that are read for every element unconditionally.
    pub reads: BTreeSet<AffineExpr>,
}

/// Loop variables of a kernel, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopPlan {
    /// Extents of the variables of each result dimension; their product is the dimension's size.
    dims: Vec<Vec<u64>>,
    /// Variables (numbered through all dimensions) that form one loop.
    groups: Vec<Range<usize>>,
    /// Number of the loop that is tiled with the innermost one, since some arrays are contiguous along it but not along
    /// the innermost.
    across: Option<usize>,
}

impl LoopPlan {
    /// Creates a plan with one variable per dimension, and without loops until variables are [merged](Self::merged).
    pub fn new(dims: &[usize]) -> LoopPlan {
        LoopPlan { dims: dims.iter().map(|&d| vec![d as u64]).collect(), groups: Vec::new(), across: None }
    }

    /// Returns the extents of all variables, outermost first.
    pub fn extents(&self) -> Vec<u64> {
        self.dims.iter().flatten().copied().collect()
    }

    /// Returns the extents of the loops, outermost first.
    pub fn loops(&self) -> Vec<u64> {
        let extents = self.extents();
        self.groups.iter().map(|g| extents[g.clone()].iter().product()).collect()
    }

    /// Returns the variables of each loop.
    pub fn groups(&self) -> &[Range<usize>] {
        &self.groups
    }

    /// Returns the number of loops over the first `rows` dimensions, if they were not merged with later ones.
    pub fn loops_of(&self, rows: usize) -> usize {
        let variables: usize = self.dims[..rows].iter().map(Vec::len).sum();
        self.groups.iter().filter(|group| group.start < variables).count()
    }

    /// Returns the number of the loop that is tiled with the innermost one.
    pub fn across(&self) -> Option<usize> {
        self.across
    }

    /// Returns the index of the result's element in terms of the variables' symbols.
    pub fn index(&self, symbols: &[SymbolId]) -> Index {
        let mut next = symbols.iter();
        let dim = |extents: &Vec<u64>| {
            let sizes: Vec<usize> = extents.iter().map(|&e| e as usize).collect();
            let strides = row_major_strides(&sizes);
            let terms = strides.iter().zip(next.by_ref());
            terms.fold(AffineExpr::default(), |sum, (&stride, &s)| {
                sum.plus(&AffineExpr::symbol(s).scaled(stride as i64))
            })
        };
        self.dims.iter().map(dim).collect()
    }

    /// Splits a variable as the survey requests; `None` if it requests nothing new.
    pub fn split(&self, survey: &Survey, symbols: &[SymbolId]) -> Option<LoopPlan> {
        let (at, factor) = survey
            .splits
            .iter()
            .find_map(|(symbol, factor)| Some((symbols.iter().position(|s| s == symbol)?, *factor)))?;
        let mut plan = self.clone();
        let mut number = 0;
        for extents in &mut plan.dims {
            for i in 0..extents.len() {
                if number == at {
                    let extent = extents[i];
                    extents.splice(i..=i, [extent / factor, factor]);
                    return Some(plan);
                }
                number += 1;
            }
        }
        None
    }

    /// Merges neighbouring variables that always occur as one linear position: `c · extent · outer + c · inner`.
    ///
    /// A variable with a trip count of 1 merges with any neighbour, since its value is always 0. Dimensions before a
    /// border are not merged with later ones: values that are computed or kept per row depend only on the dimensions
    /// before the border.
    pub fn merged(&self, survey: &Survey, symbols: &[SymbolId], borders: &[usize]) -> LoopPlan {
        let extents = self.extents();
        let firsts: Vec<usize> = borders.iter().map(|&rows| self.dims[..rows].iter().map(Vec::len).sum()).collect();
        let one = |outer: usize, inner: usize| {
            survey.uses.iter().all(|expr| {
                let (o, i) = (expr.coefficient(symbols[outer]), expr.coefficient(symbols[inner]));
                i64::try_from(extents[inner]).ok().and_then(|e| i.checked_mul(e)) == Some(o)
            })
        };
        let mut groups: Vec<Range<usize>> = Vec::new();
        for v in 0..extents.len() {
            let Some(group) = groups.last_mut() else {
                groups.push(v..v + 1);
                continue;
            };
            match carrier(&extents, group) {
                _ if firsts.contains(&v) => groups.push(v..v + 1),
                Some(last) if extents[v] > 1 && !one(last, v) => groups.push(v..v + 1),
                Some(_) | None => group.end = v + 1,
            }
        }
        let merged = LoopPlan { dims: self.dims.clone(), groups, across: None };
        LoopPlan { across: merged.find_across(survey, symbols), ..merged }
    }

    /// Returns the loop along which most arrays are contiguous that are not contiguous along the innermost loop.
    fn find_across(&self, survey: &Survey, symbols: &[SymbolId]) -> Option<usize> {
        let (extents, loops) = (self.extents(), self.loops());
        let (inner, outer) = self.groups.split_last()?;
        let lane = symbols[carrier(&extents, inner)?];
        let reads = |(number, group): (usize, &Range<usize>)| {
            let row = symbols[carrier(&extents, group)?];
            let transposed = |at: &&AffineExpr| at.coefficient(row) == 1 && at.coefficient(lane).unsigned_abs() > 1;
            let count = survey.reads.iter().filter(transposed).count();
            (count > 0 && loops[number] >= LEAST_TILED).then_some((count, number))
        };
        let most = outer.iter().enumerate().filter_map(reads).max()?;
        (loops[outer.len()] >= LEAST_TILED).then_some(most.1)
    }
}

/// Prints the loops' extents, outermost first.
impl fmt::Display for LoopPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.loops())
    }
}

/// Returns the variable that carries the counter of the whole group: the last one with a trip count above 1.
pub(crate) fn carrier(extents: &[u64], group: &Range<usize>) -> Option<usize> {
    group.clone().rev().find(|&v| extents[v] > 1)
}
