//! Symbolic indices: the position of an element as an affine function of loop variables. Depends on shapes, not on
//! LLVM.
//!
//! An [`AffineExpr`] is `constant + Σ coefficient · symbol`. A symbol is a loop variable or a number computed at run
//! time (the start of a dynamic slice, a gathered index). Movement operations become arithmetic on coordinates, so that
//! a whole chain of broadcast, transpose, slice and reshape costs one address.

use std::collections::BTreeMap;

use xla_hlo::ops::{PadDim, SliceRange};

/// Number of a [`Symbol`] in a [`Symbols`] table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SymbolId(pub u32);

/// Compile-time facts about a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Exclusive upper bound of the values, which are at least 0; `None` if unknown.
    pub extent: Option<u64>,
    /// Nest level of the definition; 0 is outside of all loops.
    pub level: usize,
}

/// Table of the symbols of one kernel.
#[derive(Clone, Debug, Default)]
pub struct Symbols(Vec<Symbol>);

impl Symbols {
    /// Adds a symbol.
    pub fn add(&mut self, symbol: Symbol) -> SymbolId {
        self.0.push(symbol);
        SymbolId(self.0.len() as u32 - 1)
    }

    /// Returns the facts about a symbol.
    pub fn get(&self, id: SymbolId) -> Symbol {
        self.0[id.0 as usize]
    }
}

/// Affine expression for a coordinate along one dimension, or for a position in an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct AffineExpr {
    /// Coefficients by symbol, none of them zero.
    terms: BTreeMap<SymbolId, i64>,
    constant: i64,
}

/// Index of an element: one coordinate per dimension.
pub type Index = Vec<AffineExpr>;

/// Result of dividing a coordinate by a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// Quotient and remainder, both affine.
    Exact(AffineExpr, AffineExpr),
    /// Quotient and remainder would be affine if this symbol were split in two: `high · factor + low`.
    IfSplit(SymbolId, u64),
    /// A run-time division is needed.
    Runtime,
}

impl AffineExpr {
    /// Creates a constant expression.
    pub fn constant(constant: i64) -> AffineExpr {
        AffineExpr { terms: BTreeMap::new(), constant }
    }

    /// Creates an expression that consists of one symbol.
    pub fn symbol(id: SymbolId) -> AffineExpr {
        AffineExpr { terms: BTreeMap::from([(id, 1)]), constant: 0 }
    }

    /// Iterates over the terms, ordered by symbol.
    pub fn terms(&self) -> impl Iterator<Item = (SymbolId, i64)> + '_ {
        self.terms.iter().map(|(&s, &c)| (s, c))
    }

    /// Returns the constant part.
    pub fn offset(&self) -> i64 {
        self.constant
    }

    /// Returns the coefficient of a symbol; 0 if it does not occur.
    pub fn coefficient(&self, id: SymbolId) -> i64 {
        self.terms.get(&id).copied().unwrap_or(0)
    }

    /// Returns the sum of two coordinates.
    #[must_use]
    pub fn plus(mut self, other: &AffineExpr) -> AffineExpr {
        self.constant += other.constant;
        for (id, c) in other.terms() {
            let sum = self.coefficient(id) + c;
            if sum == 0 {
                self.terms.remove(&id);
            } else {
                self.terms.insert(id, sum);
            }
        }
        self
    }

    /// Returns the coordinate plus a constant.
    #[must_use]
    pub fn shifted(mut self, by: i64) -> AffineExpr {
        self.constant += by;
        self
    }

    /// Returns the coordinate times a constant.
    #[must_use]
    pub fn scaled(mut self, by: i64) -> AffineExpr {
        if by == 0 {
            return AffineExpr::default();
        }
        self.constant *= by;
        self.terms.values_mut().for_each(|c| *c *= by);
        self
    }

    /// Returns the coordinate with a symbol replaced by an expression.
    #[must_use]
    pub fn with_symbol(&self, id: SymbolId, by: &AffineExpr) -> AffineExpr {
        let mut rest = self.clone();
        match rest.terms.remove(&id) {
            Some(c) => rest.plus(&by.clone().scaled(c)),
            None => rest,
        }
    }

    /// Returns the deepest level of the symbols' definitions.
    pub fn level(&self, symbols: &Symbols) -> usize {
        self.terms.keys().map(|&s| symbols.get(s).level).max().unwrap_or(0)
    }

    /// Returns the least and the greatest value, if all symbols' extents are known and nothing overflows.
    pub fn bounds(&self, symbols: &Symbols) -> Option<(i64, i64)> {
        let mut bounds = (self.constant, self.constant);
        for (id, c) in self.terms() {
            let last = i64::try_from(symbols.get(id).extent?.saturating_sub(1)).ok()?;
            let reach = c.checked_mul(last)?;
            if reach < 0 {
                bounds.0 = bounds.0.checked_add(reach)?;
            } else {
                bounds.1 = bounds.1.checked_add(reach)?;
            }
        }
        Some(bounds)
    }

    /// Whether all values fit into signed 32-bit integers, including the slightly larger values of threads and lanes
    /// beyond the last one, which bounds checks must recognize.
    pub fn fits_32_bits(&self, symbols: &Symbols) -> bool {
        const BEYOND: u64 = 1 << 16;
        let is_short = |bound: i64| bound.unsigned_abs() <= i32::MAX as u64 - BEYOND;
        self.bounds(symbols).is_some_and(|(low, high)| is_short(low) && is_short(high))
    }

    fn is_within(&self, limit: i64, symbols: &Symbols) -> bool {
        self.bounds(symbols).is_some_and(|(low, high)| low >= 0 && high < limit)
    }

    /// Divides by a positive number: multiples of it become the quotient; the other terms are the remainder if their
    /// sum is always less than it.
    pub fn divide(&self, by: i64, symbols: &Symbols) -> Division {
        if by == 1 {
            return Division::Exact(self.clone(), AffineExpr::default());
        }
        let (quotient, rest) = self.multiples(by);
        if rest.is_within(by, symbols) {
            return Division::Exact(quotient, rest);
        }
        self.split_for(by, &rest, symbols)
    }

    /// Splits the coordinate into the quotient of the terms that are multiples of a positive number, and the other
    /// terms.
    pub fn multiples(&self, by: i64) -> (AffineExpr, AffineExpr) {
        let mut quotient = AffineExpr::constant(self.constant.div_euclid(by));
        let mut rest = AffineExpr::constant(self.constant.rem_euclid(by));
        for (id, c) in self.terms() {
            let (part, c) = if c % by == 0 { (&mut quotient, c / by) } else { (&mut rest, c) };
            part.terms.insert(id, c);
        }
        (quotient, rest)
    }

    fn split_for(&self, by: i64, rest: &AffineExpr, symbols: &Symbols) -> Division {
        for (id, c) in rest.terms() {
            let Some(extent) = symbols.get(id).extent else { continue };
            if c > 0 && by % c == 0 {
                let factor = (by / c) as u64;
                if extent > factor && extent % factor == 0 {
                    return Division::IfSplit(id, factor);
                }
            }
        }
        Division::Runtime
    }
}

/// Returns the position of an element in memory, for an array with these strides.
pub fn position(index: &[AffineExpr], strides: &[usize]) -> AffineExpr {
    index.iter().zip(strides).fold(AffineExpr::default(), |sum, (c, &s)| sum.plus(&c.clone().scaled(s as i64)))
}

/// Returns the strides of a row-major array.
pub fn row_major_strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d];
    }
    strides
}

/// Returns the operand's index for an element of a broadcast. Operand dimensions of size 1 stay at 0.
pub fn broadcast(index: &[AffineExpr], dimensions: &[usize]) -> Index {
    dimensions.iter().map(|&d| index[d].clone()).collect()
}

/// Returns the operand's index for an element of a transpose.
pub fn transpose(index: &[AffineExpr], permutation: &[usize]) -> Index {
    let mut operand = vec![AffineExpr::default(); permutation.len()];
    for (expr, &d) in index.iter().zip(permutation) {
        operand[d] = expr.clone();
    }
    operand
}

/// Returns the operand's index for an element of a slice.
pub fn slice(index: &[AffineExpr], ranges: &[SliceRange]) -> Index {
    let shift = |(c, r): (&AffineExpr, &SliceRange)| c.clone().scaled(r.stride as i64).shifted(r.start as i64);
    index.iter().zip(ranges).map(shift).collect()
}

/// Returns the operand's index for an element of a reverse.
pub fn reverse(index: &[AffineExpr], dimensions: &[usize], dims: &[usize]) -> Index {
    let mut operand = index.to_vec();
    for &d in dimensions {
        operand[d] = index[d].clone().scaled(-1).shifted(dims[d] as i64 - 1);
    }
    operand
}

/// Returns the position relative to the operand's first element along each dimension of a pad, before division by the
/// interior step.
pub fn pad(index: &[AffineExpr], dims: &[PadDim]) -> Index {
    index.iter().zip(dims).map(|(c, p)| c.clone().shifted(-p.low)).collect()
}

/// Returns the groups of dimensions of a reshape with equal products, as small as possible. Dimensions of size 1 may
/// form a group of their own, with nothing on the other side.
pub fn reshape_groups(from: &[usize], to: &[usize]) -> Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut groups = Vec::new();
    let (mut f, mut t) = (0, 0);
    while f < from.len() || t < to.len() {
        let (f0, t0) = (f, t);
        let (mut pf, mut pt) = (1usize, 1usize);
        if f < from.len() {
            pf *= from[f];
            f += 1;
        }
        if t < to.len() {
            pt *= to[t];
            t += 1;
        }
        while pf != pt {
            if (pf < pt || t == to.len()) && f < from.len() {
                pf *= from[f];
                f += 1;
            } else if t < to.len() {
                pt *= to[t];
                t += 1;
            } else {
                break;
            }
        }
        groups.push((f0..f, t0..t));
    }
    groups
}
