//! Loop over keys of a thread group.

use inkwell::values::BasicValueEnum;
use xla_hlo::{ElementType, Result, Scalar as Element};

use super::plan::AttentionDecode;
use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::contraction::attention::kernel::AttentionKernel;
use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::core::convolution::converted;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::range::Range;
use crate::fused::loops::variables::counters;
use crate::fused::simt::attention::online::Row;
use crate::fused::simt::attention::operand::clamped;
use crate::lanes::Lanes;
use crate::simt::Shuffle;

/// Position of a thread in its group, and of the group in its block.
pub(super) struct KeyGroup<'e, 'ctx, 'a, 'm> {
    pub kernel: &'a AttentionKernel<'m>,
    pub plan: AttentionDecode,
    pub batch: &'a [AffineExpr],
    pub thread: Lanes<'e, 'ctx>,
    /// Index of the thread in the group.
    pub member: Lanes<'e, 'ctx>,
    /// Index of the group in the block.
    number: AffineExpr,
    /// First of the thread's elements in keys and in values. Threads beyond the end of a head use the last elements
    /// again.
    elements: [AffineExpr; 2],
    /// Elements of each query that the thread holds.
    queries: Vec<Lanes<'e, 'ctx>>,
}

/// Softmax state of a query, equal in all threads of a group, and the thread's sums of exponentials times values.
#[derive(Clone, Copy)]
pub(super) struct QueryState<'e, 'ctx> {
    pub row: Row<'e, 'ctx>,
    pub sums: Lanes<'e, 'ctx>,
}

/// Key of an iteration, with the thread's elements of it and of its value.
struct Key<'e, 'ctx> {
    at: AffineExpr,
    /// Whether the key exists; `None` if that is certain.
    exists: Option<Lanes<'e, 'ctx>>,
    key: Lanes<'e, 'ctx>,
    value: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx, 'a, 'm> KeyGroup<'e, 'ctx, 'a, 'm> {
    /// Returns the position of a thread of a block, after loading the queries.
    pub fn new(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (kernel, plan): (&'a AttentionKernel<'m>, AttentionDecode),
        batch: &'a [AffineExpr],
        thread: Lanes<'e, 'ctx>,
    ) -> Result<Self> {
        let symbol = AffineExpr::symbol(s.uniform_symbol(thread, Some(AttentionDecode::THREADS)));
        let (number, member) = s.divide(&symbol, plan.group as i64)?;
        let [of_keys, of_values] = plan.heads.map(|head| {
            let chunk = clamped(s, member.clone(), head / plan.access - 1)?;
            Ok(chunk.scaled(plan.access as i64))
        });
        let elements = [of_keys?, of_values?];
        let place = s.number_of(&member)?;
        let member = s.lanes_of(place);
        let side = kernel.sides()[0];
        let queries = (0..plan.queries).map(|query| {
            let free = counters(s, &AffineExpr::constant(query as i64), &kernel.scores.free[side as usize])?;
            let sums = vec![elements[0].clone()];
            read(s, (&kernel.scores, side), (batch, free, sums), plan.access)
        });
        let queries = queries.collect::<Result<_>>()?;
        Ok(KeyGroup { kernel, plan, batch, thread, member, number, elements, queries })
    }

    /// Emits the loop over the group's keys of the part `begin..end`, and returns the softmax states.
    pub fn rows(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        [begin, end]: [Lanes<'e, 'ctx>; 2],
    ) -> Result<Vec<QueryState<'e, 'ctx>>> {
        let (plan, keys) = (self.plan, self.kernel.keys());
        let zero = elemental::constant(s.emitter, ElementType::F32, Element::Float(0.0)).lanes();
        let row = Row { largest: zero.constant(f64::NEG_INFINITY), sum: zero };
        let start = QueryState { row, sums: zero.splat(plan.access as u32) };
        let mut rows = raws(&vec![start; plan.queries as usize]);
        let step = plan.keys_per_iteration();
        let whole = keys.is_multiple_of(step);
        let middle = if whole { end } else { begin + (end - begin).udiv(step as i64) * step as i64 };
        if keys >= step {
            let extent = Some(keys - step + 1);
            let range = Range { start: begin, end: middle, extent, width: 1, step, whole: true };
            rows = s.for_each(range, rows, &mut |s, first, carried| {
                s.emitter.keep_loop()?;
                let states = states(s.emitter, carried);
                Ok(raws(&self.add_keys(s, &AffineExpr::symbol(first), states)?))
            })?;
        }
        if !whole {
            let before = rows.clone();
            rows = s.when(middle.lt(end), &before, |s| {
                let first = AffineExpr::symbol(s.uniform_symbol(middle, Some(keys)));
                let states = states(s.emitter, &before);
                Ok(raws(&self.add_keys(s, &first, states)?))
            })?;
        }
        Ok(states(s.emitter, &rows))
    }

    /// Processes the keys of an iteration; `first` is the first one of the block.
    fn add_keys(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        first: &AffineExpr,
        states: Vec<QueryState<'e, 'ctx>>,
    ) -> Result<Vec<QueryState<'e, 'ctx>>> {
        // Adjacent groups have adjacent keys.
        let keys = (0..self.plan.keys)
            .map(|number| self.key(s, first.clone().plus(&self.number).shifted((number * self.plan.groups()) as i64)));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        (0..).zip(states).map(|(query, state)| self.with_keys(s, query, state, &keys)).collect()
    }

    /// Loads a key and its value.
    fn key(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, number: AffineExpr) -> Result<Key<'e, 'ctx>> {
        let (kernel, access) = (self.kernel, self.plan.access);
        let [_, side, values] = kernel.sides();
        let at = clamped(s, number.clone(), kernel.keys() - 1)?;
        let exists = if at == number {
            None
        } else {
            let number = s.number_of(&number)?;
            Some(s.lanes_of(number).lt(kernel.keys() as i64))
        };
        let [of_key, of_value] = self.elements.clone().map(|element| vec![element]);
        let key = read(s, (&kernel.scores, side), (self.batch, vec![at.clone()], of_key), access)?;
        let value = read(s, (&kernel.result, values), (self.batch, of_value, vec![at.clone()]), access)?;
        // The weight of a missing key is 0, but 0 times an infinite value would be NaN.
        let value = exists.map_or(value, |exists| exists.splat(access as u32).select(value, 0.0));
        Ok(Key { at, exists, key, value })
    }

    /// Updates a query's softmax with the keys of an iteration.
    fn with_keys(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        query: u64,
        QueryState { row, mut sums }: QueryState<'e, 'ctx>,
        keys: &[Key<'e, 'ctx>],
    ) -> Result<QueryState<'e, 'ctx>> {
        let logits = keys.iter().map(|key| self.logit(s, query, key)).collect::<Result<Vec<_>>>()?;
        let largest = logits.iter().copied().reduce(Lanes::maximum).unwrap_or(row.largest);
        let step = row.with(largest, &logits);
        let access = self.plan.access as u32;
        sums = sums * step.scale.splat(access);
        for (exponential, key) in step.exponentials.iter().zip(keys) {
            sums = exponential.splat(access).fma(key.value, sums);
        }
        Ok(QueryState { row: step.row, sums })
    }

    /// Computes the logit of a query and a key, in all threads of the group. It is minus infinity for a key that does
    /// not exist.
    fn logit(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, query: u64, key: &Key<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        let plan = self.plan;
        let own = self.queries[query as usize];
        let mut sum = own.lane(0) * key.key.lane(0);
        for lane in 1..plan.access as u32 {
            sum = own.lane(lane).fma(key.key.lane(lane), sum);
        }
        let chunks = plan.heads[0] / plan.access;
        if chunks < plan.group {
            sum = self.member.lt(chunks as i64).select(sum, 0.0);
        }
        let mut distance = 1;
        while distance < plan.group as u32 {
            sum = sum + s.emitter.shuffle(sum, Shuffle::Xor(distance))?;
            distance *= 2;
        }
        let row = AffineExpr::constant(query as i64);
        let score = Value::new(ElementType::F32, sum);
        let function = self.kernel.logits();
        let index = function.index(s, self.batch, [&row, &key.at])?;
        let logit = function.value(s, &index, &[score])?;
        Ok(key.exists.map_or(logit, |exists| exists.select(logit, f64::NEG_INFINITY)))
    }
}

/// Loads adjacent elements of an operand as f32.
fn read<'e, 'ctx, 'm>(
    s: &mut FusedEmitter<'e, 'ctx, 'm>,
    (matmul, side): (&Matmul<'m>, MatmulSide),
    (batch, mut free, mut sums): (&[AffineExpr], Vec<AffineExpr>, Vec<AffineExpr>),
    width: u64,
) -> Result<Lanes<'e, 'ctx>> {
    match matmul.neighbours[side as usize].along {
        Along::K => s.as_lanes(&mut sums, width, &matmul.contracting)?,
        Along::Free => s.as_lanes(&mut free, width, &matmul.free[side as usize])?,
    }
    let index = matmul.operand_index(s, side, (batch, &free, &sums), &mut None)?;
    let value = s.element(matmul.operands[side as usize], &index)?.splat(width as u32);
    Ok(converted(s.emitter, value, ElementType::F32)?.lanes())
}

fn raws<'ctx>(states: &[QueryState<'_, 'ctx>]) -> Vec<BasicValueEnum<'ctx>> {
    states.iter().flat_map(|state| [state.row.largest, state.row.sum, state.sums]).map(Lanes::raw).collect()
}

fn states<'e, 'ctx>(emitter: &'e Emitter<'ctx>, raws: &[BasicValueEnum<'ctx>]) -> Vec<QueryState<'e, 'ctx>> {
    let lanes = |raw: BasicValueEnum<'ctx>| emitter.lanes(raw);
    let of = |raws: &[BasicValueEnum<'ctx>]| QueryState {
        row: Row { largest: lanes(raws[0]), sum: lanes(raws[1]) },
        sums: lanes(raws[2]),
    };
    raws.chunks_exact(3).map(of).collect()
}
