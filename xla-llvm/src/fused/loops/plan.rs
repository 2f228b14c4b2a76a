//! Loop plan of a kernel: dimensions split for reshapes, merged where contiguous in memory.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use crate::fused::loops::affine::{AffineExpr, Index, Symbol, SymbolId, Symbols, row_major_strides};
use crate::fused::tuning::vector::LEAST_TILED;

/// Findings of a trial emission: every coordinate that was turned into a number, and splits that would have helped.
#[derive(Default)]
pub(crate) struct Survey {
    pub uses: BTreeSet<AffineExpr>,
    pub splits: Vec<(SymbolId, u64)>,
    /// Positions in memory that are read for every element, whatever its value.
    pub reads: BTreeSet<AffineExpr>,
}

/// The loop variables of a kernel, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopPlan {
    /// Variables of each dimension of the result; their extents multiply to the dimension's size.
    dims: Vec<Vec<u64>>,
    /// Variables (in order through all dimensions) that run as one loop.
    groups: Vec<Range<usize>>,
    /// The loop that goes in tiles with the innermost one, since arrays are contiguous along it that are not along
    /// that.
    across: Option<usize>,
}

impl LoopPlan {
    /// One variable a dimension, each a loop of its own.
    pub fn new(dims: &[usize]) -> LoopPlan {
        let mut plan =
            LoopPlan { dims: dims.iter().map(|&d| vec![d as u64]).collect(), groups: Vec::new(), across: None };
        plan.groups = (0..dims.len()).map(|i| i..i + 1).collect();
        plan
    }

    /// Extents of all variables, outermost first.
    pub fn extents(&self) -> Vec<u64> {
        self.dims.iter().flatten().copied().collect()
    }

    /// Extents of the loops, outermost first.
    pub fn loops(&self) -> Vec<u64> {
        let extents = self.extents();
        self.groups.iter().map(|g| extents[g.clone()].iter().product()).collect()
    }

    /// Variables of each loop.
    pub fn groups(&self) -> &[Range<usize>] {
        &self.groups
    }

    /// Number of loops through the first `rows` dimensions, where those were merged apart from the others.
    pub fn loops_of(&self, rows: usize) -> usize {
        let variables: usize = self.dims[..rows].iter().map(Vec::len).sum();
        self.groups.iter().filter(|group| group.start < variables).count()
    }

    /// The number of the loop that goes in tiles with the innermost one.
    pub fn across(&self) -> Option<usize> {
        self.across
    }

    /// The index of the result's element in terms of the variables' symbols.
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

    /// Splits variables as a survey asks for; `None` when it asks for nothing new.
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
                    plan.groups = (0..self.extents().len() + 1).map(|i| i..i + 1).collect();
                    return Some(plan);
                }
                number += 1;
            }
        }
        None
    }

    /// Merges neighbouring variables whose every use is the position in both: `c · extent · outer + c · inner`. A
    /// variable of one turn goes with any neighbour, since its value is always 0. The dimensions in front of a border
    /// stay apart from the others: what is computed of a row, or kept of it, is found by the others alone.
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

    /// Of the loops that arrays are read contiguously along, but not along the innermost, the one with most reads.
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

/// The loops' extents, outermost first.
impl fmt::Display for LoopPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.loops())
    }
}

/// The variable of a group that stands for the whole group's counter: the last one that takes more than one turn.
pub(crate) fn carrier(extents: &[u64], group: &Range<usize>) -> Option<usize> {
    group.clone().rev().find(|&v| extents[v] > 1)
}

/// Symbols for all variables of a plan, all at one level.
pub(crate) fn trial_symbols(plan: &LoopPlan, symbols: &mut Symbols) -> Vec<SymbolId> {
    plan.extents().iter().map(|&extent| symbols.add(Symbol { extent: Some(extent), level: 0 })).collect()
}
