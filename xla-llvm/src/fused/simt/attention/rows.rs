//! Two rows of an attention in a thread: the softmax state, and the results.

use inkwell::values::BasicValueEnum;
use xla_hlo::{ElementType, Error, Result, Scalar as Element};

use super::function::Columns;
use super::online::{Row, of_row};
use super::operand::clamped;
use super::products::{self, Placed, Sums};
use crate::elemental;
use crate::emitter::Emitter;
use crate::fused::contraction::attention::kernel::AttentionKernel;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::variables::counters;
use crate::lanes::Lanes;
use crate::mma::ROWS;

/// Rows of a thread in a tile of queries, and their position in the batch.
pub(super) struct ThreadRows<'a, 'm> {
    pub kernel: &'a AttentionKernel<'m>,
    pub batch: Vec<AffineExpr>,
    rows: [AffineExpr; 2],
    /// Index of the thread among the four that share the rows.
    member: AffineExpr,
}

/// A thread's state of its rows.
pub(super) struct State<'e, 'ctx> {
    rows: [Row<'e, 'ctx>; 2],
    /// Accumulated products of exponentials and values.
    pub results: Vec<Sums<'e, 'ctx>>,
}

/// Exponentials of a tile, in both rows.
pub(super) type Exponentials<'e, 'ctx> = [Vec<Lanes<'e, 'ctx>>; 2];

impl<'a, 'm> ThreadRows<'a, 'm> {
    /// Returns the rows of the thread with this lane in its warp; the warp's rows begin at `first`.
    pub fn new(
        s: &mut FusedEmitter<'_, '_, 'm>,
        (kernel, batch): (&'a AttentionKernel<'m>, Vec<AffineExpr>),
        first: &AffineExpr,
        lane: &AffineExpr,
    ) -> Result<Self> {
        let (group, member) = s.divide(lane, 4)?;
        let rows = [0, ROWS / 2].map(|half| first.clone().plus(&group).shifted(half as i64));
        Ok(ThreadRows { kernel, batch, rows, member })
    }

    /// Updates the softmax with another tile of `keys` keys, given their scores, and rescales the results.
    pub fn with<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (tile, keys): (&AffineExpr, u64),
        scores: Vec<Sums<'e, 'ctx>>,
        State { rows, mut results }: State<'e, 'ctx>,
    ) -> Result<(State<'e, 'ctx>, Exponentials<'e, 'ctx>)> {
        let scores = [scores];
        let columns = Columns::of_tile(s, tile, &self.member, [keys, self.kernel.keys()])?;
        let function = self.kernel.logits();
        let [upper, lower] = [0, 1].map(|half| {
            let row = clamped(s, self.rows[half].clone(), self.kernel.queries() - 1)?;
            let place = (&self.batch[..], &row);
            let logits = function.values(s, place, &columns, (half, &scores), f64::NEG_INFINITY)?;
            let largest = logits.iter().copied().reduce(Lanes::maximum).unwrap_or(rows[half].largest);
            Ok::<_, Error>(rows[half].with(of_row(s.emitter, largest, Lanes::maximum)?, &logits))
        });
        let (upper, lower) = (upper?, lower?);
        for [a, b, c, d] in &mut results {
            (*a, *b, *c, *d) = (*a * upper.scale, *b * upper.scale, *c * lower.scale, *d * lower.scale);
        }
        Ok((State { rows: [upper.row, lower.row], results }, [upper.exponentials, lower.exponentials]))
    }

    /// Returns the thread's results as adjacent elements of rows, with their positions in the second dot's result.
    pub fn results<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        state: State<'e, 'ctx>,
    ) -> Result<Vec<Placed<'e, 'ctx>>> {
        let factor = |row: Row<'e, 'ctx>| {
            let sum = of_row(s.emitter, row.sum, |a, b| a + b)?;
            Ok::<_, Error>(sum.constant(1.0) / sum)
        };
        let [upper, lower] = state.rows.map(factor);
        let factors = [upper?, lower?];
        let [upper, lower] = self.rows.each_ref().map(|row| self.row_of_result(s, row));
        let rows = [upper?, lower?];
        let scaled =
            |[a, b, c, d]: &Sums<'e, 'ctx>| [*a * factors[0], *b * factors[0], *c * factors[1], *d * factors[1]];
        let results: Vec<_> = state.results.iter().map(scaled).collect();
        Ok(products::placed(&results, &rows, &self.member, self.kernel.sides()[2]))
    }

    /// Returns the index of a row among the rows of the second dot's result, whose dimensions may be permuted. A row
    /// that does not exist maps to one beyond the last.
    fn row_of_result(&self, s: &mut FusedEmitter<'_, '_, 'm>, row: &AffineExpr) -> Result<AffineExpr> {
        let order = &self.kernel.parts.rows;
        if order.is_sorted() {
            return Ok(row.clone());
        }
        let queries = self.kernel.queries();
        let extents = &self.kernel.scores.free[self.kernel.sides()[0] as usize];
        let extents: Vec<u64> = extents.iter().copied().filter(|&extent| extent != 1).collect();
        let level = row.level(&s.symbols);
        s.at_level(level, |s| {
            let there = clamped(s, row.clone(), queries - 1)?;
            let places = counters(s, &there, &extents)?;
            let number = order
                .iter()
                .fold(AffineExpr::default(), |number, &d| number.scaled(extents[d] as i64).plus(&places[d]));
            let [row, number] = [row, &number].map(|expr| s.number_of(expr).map(|number| s.lanes_of(number)));
            let (row, number) = (row?, number?);
            let number = row.lt(queries as i64).select(number, queries as i64);
            Ok(s.computed(number, None, Some(queries + 1), level))
        })
    }
}

impl<'e, 'ctx> State<'e, 'ctx> {
    /// Returns the state before the first tile, for values of `elements` elements.
    pub fn new(s: &FusedEmitter<'e, 'ctx, '_>, elements: u64) -> State<'e, 'ctx> {
        let zero = elemental::constant(s.emitter, ElementType::F32, Element::Float(0.0)).lanes();
        let row = Row { largest: zero.constant(f64::NEG_INFINITY), sum: zero };
        State { rows: [row; 2], results: products::zeros(s, elements) }
    }

    /// Returns the values that the loop carries.
    pub fn raws(&self) -> Vec<BasicValueEnum<'ctx>> {
        let rows = self.rows.iter().flat_map(|row| [row.largest, row.sum]);
        rows.chain(self.results.iter().flatten().copied()).map(Lanes::raw).collect()
    }

    /// Returns the state from the values that the loop carries.
    pub fn from_raws(emitter: &'e Emitter<'ctx>, raws: &[BasicValueEnum<'ctx>]) -> State<'e, 'ctx> {
        let lanes = |number: usize| emitter.lanes(raws[number]);
        let rows = [0, 2].map(|at| Row { largest: lanes(at), sum: lanes(at + 1) });
        let results = (4..raws.len()).step_by(4).map(|at| [0, 1, 2, 3].map(|number| lanes(at + number)));
        State { rows, results: results.collect() }
    }
}
