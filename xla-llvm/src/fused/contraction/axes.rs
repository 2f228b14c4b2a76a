//! Loops over a dimension list of a GEMM (M, N or K): neighbouring dimensions whose strides match become one loop.

use std::ops::Range;

use crate::fused::loops::affine::{AffineExpr, SymbolId, position, row_major_strides};

/// List of dimensions as loops: some neighbours form the innermost loop, every other dimension is a loop of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Extents of the dimensions that are loops of their own.
    pub outer: Vec<u64>,
    /// Extent of the innermost loop.
    pub extent: u64,
    /// Dimensions of the innermost loop: the last one carries its counter; the others are 0.
    inner: Range<usize>,
}

impl Axis {
    /// Merges into the innermost loop the last dimension with more than one element and the preceding ones that
    /// continue its stride in all `positions` in memory; `symbols` are the dimensions' symbols.
    pub fn last(extents: &[u64], symbols: &[SymbolId], positions: &[&AffineExpr]) -> Axis {
        let carrier = extents.iter().rposition(|&extent| extent > 1).unwrap_or(extents.len().saturating_sub(1));
        Axis::carried_by(carrier, extents, symbols, positions)
    }

    /// Chooses the longest possible innermost loop, merged as by [`Axis::last`].
    pub fn longest(extents: &[u64], symbols: &[SymbolId], positions: &[&AffineExpr]) -> Axis {
        let all = (0..extents.len()).map(|carrier| Axis::carried_by(carrier, extents, symbols, positions));
        all.max_by_key(|axis| axis.extent).unwrap_or_else(|| Axis::last(extents, symbols, positions))
    }

    fn carried_by(carrier: usize, extents: &[u64], symbols: &[SymbolId], positions: &[&AffineExpr]) -> Axis {
        let mut extent = extents.get(carrier).copied().unwrap_or(1);
        let mut first = carrier;
        let goes_on = |d: usize, extent: u64| {
            positions.iter().all(|at| {
                let step = at.coefficient(symbols[carrier]).checked_mul(extent as i64);
                step == Some(at.coefficient(symbols[d]))
            })
        };
        while let Some(d) = first.checked_sub(1).filter(|&d| extents[d] == 1 || goes_on(d, extent)) {
            extent *= extents[d];
            first = d;
        }
        Axis::of(first..carrier + 1, extents)
    }

    /// Makes each dimension a loop of its own; the innermost is the last one with more than one element.
    pub fn apart(extents: &[u64]) -> Axis {
        let carrier = extents.iter().rposition(|&extent| extent > 1).unwrap_or(extents.len().saturating_sub(1));
        Axis::of(carrier..carrier + 1, extents)
    }

    /// Makes each dimension a loop of its own; the innermost is the longest one.
    pub fn longest_apart(extents: &[u64]) -> Axis {
        let carrier = (0..extents.len()).max_by_key(|&d| extents[d]).unwrap_or(0);
        Axis::of(carrier..carrier + 1, extents)
    }

    fn of(inner: Range<usize>, extents: &[u64]) -> Axis {
        let inner = inner.start..inner.end.min(extents.len());
        let outer = extents.iter().enumerate().filter(|(d, _)| !inner.contains(d)).map(|(_, &extent)| extent);
        Axis { outer: outer.collect(), extent: extents[inner.clone()].iter().product(), inner }
    }

    /// Returns a part of an axis that is one loop; the part may begin anywhere.
    pub fn part(&self, extent: u64) -> Axis {
        Axis { extent, ..self.clone() }
    }

    /// Returns the extents of all loops, outermost first.
    pub fn loops(&self) -> Vec<u64> {
        self.outer.iter().copied().chain([self.extent]).collect()
    }

    /// Returns the linear number of a step, from the counters of the loops.
    pub fn step(&self, counters: &[AffineExpr]) -> AffineExpr {
        let loops: Vec<usize> = self.loops().iter().map(|&extent| extent as usize).collect();
        position(counters, &row_major_strides(&loops))
    }

    /// Returns the symbol that carries the counter of the innermost loop.
    pub fn carrier(&self, symbols: &[SymbolId]) -> Option<SymbolId> {
        symbols.get(self.inner.end.checked_sub(1)?).copied()
    }

    /// Returns the coordinates of the dimensions, from the counters of the outer loops and of the innermost one.
    pub fn coordinates(&self, outer: &[AffineExpr], inner: &AffineExpr) -> Vec<AffineExpr> {
        let before = self.inner.start.min(outer.len());
        let mut exprs = outer[..before].to_vec();
        exprs.extend(
            self.inner.clone().map(|d| if d + 1 == self.inner.end { inner.clone() } else { AffineExpr::default() }),
        );
        exprs.extend_from_slice(&outer[before..]);
        exprs
    }
}
