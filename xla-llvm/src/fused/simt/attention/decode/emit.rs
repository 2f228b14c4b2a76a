//! Functions of both launches.

use inkwell::values::PointerValue;
use xla_hlo::{ElementType, Error, Result};

use super::combine::Partial;
use super::key_group::KeyGroup;
use super::plan::AttentionDecode;
use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::attention::function::coordinates;
use crate::fused::contraction::attention::kernel::AttentionKernel;
use crate::fused::contraction::matmul::MatmulSide;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::range::Range;
use crate::lanes::Lanes;
use crate::simt::Register;

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the body of the function; a block processes a part of a head's keys.
    pub(super) fn emit_attention_decode<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        plan: AttentionDecode,
    ) -> Result<Launch> {
        let kernel = self.required_attention()?;
        emitter.allow_all_registers();
        let scratch = frame.pointers.last().copied().filter(|_| plan.cut.parts > 1);
        let work_items = plan.cut.parts * plan.batches;
        let mut s = self.bind(emitter, frame.pointers)?;
        let [block, thread] = [Register::Block, Register::Thread].map(|register| emitter.register(register));
        let item = AffineExpr::symbol(s.uniform_symbol(block?.zext(64), Some(work_items)));
        let thread = thread?.zext(64);
        let (part, batch) = plan.cut.divide(&mut s, &item, plan.batches)?;
        let batch = coordinates(&mut s, &batch, &kernel.scores.batch)?;
        let range = plan.cut.bounds(&mut s, &part, (kernel.keys(), 1))?;
        let group = KeyGroup::new(&mut s, (&kernel, plan), &batch, thread)?;
        let rows = group.rows(&mut s, range)?;
        let rows = group.put_together(&mut s, rows)?;
        for query in 0..plan.queries {
            let row = rows.row(&s, query)?;
            self.for_each_element(&mut s, plan, thread, &mut |s, element| {
                let sum = rows.sum(s, &row, (query, element))?;
                match scratch {
                    None => self.store_attention(s, (&kernel, &batch), query, element, sum * row.factor()),
                    Some(scratch) => {
                        let partial = Partial::new(s, plan, scratch, &item)?;
                        partial.store(s, query, element, sum);
                        Ok(())
                    }
                }
            })?;
            if let Some(scratch) = scratch {
                let partial = Partial::new(&mut s, plan, scratch, &item)?;
                s.when(thread.eq(0), &[], |s| {
                    partial.store_softmax(s, query, &row);
                    Ok(Vec::new())
                })?;
            }
        }
        Ok(Launch { work_items, block: Some(AttentionDecode::THREADS as u32) })
    }

    /// Emits the body of the function that combines the parts; a block processes a head.
    pub(super) fn emit_attention_results<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        plan: AttentionDecode,
    ) -> Result<Launch> {
        let kernel = self.required_attention()?;
        let missing = || Error::internal("attention has no scratch memory for its parts");
        let scratch: PointerValue<'ctx> = frame.pointers.last().copied().ok_or_else(missing)?;
        let mut s = self.bind(emitter, frame.pointers)?;
        let [block, thread] = [Register::Block, Register::Thread].map(|register| emitter.register(register));
        let item = AffineExpr::symbol(s.uniform_symbol(block?.zext(64), Some(plan.batches)));
        let thread = thread?.zext(64);
        let batch = coordinates(&mut s, &item, &kernel.scores.batch)?;
        let partial = Partial::new(&mut s, plan, scratch, &item)?;
        for query in 0..plan.queries {
            let largest = partial.largest(&mut s, query)?;
            self.for_each_element(&mut s, plan, thread, &mut |s, element| {
                let result = partial.result(s, (query, element), largest)?;
                self.store_attention(s, (&kernel, &batch), query, element, result)
            })?;
        }
        Ok(Launch { work_items: plan.batches, block: Some(AttentionDecode::THREADS as u32) })
    }

    /// Emits a loop over the thread's elements of a value.
    fn for_each_element<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        plan: AttentionDecode,
        thread: Lanes<'e, 'ctx>,
        body: &mut dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, Lanes<'e, 'ctx>) -> Result<()>,
    ) -> Result<()> {
        let range = Range {
            start: thread,
            end: s.number(plan.heads[1] as i64),
            extent: Some(plan.heads[1]),
            width: 1,
            step: AttentionDecode::THREADS,
            whole: true,
        };
        s.for_each(range, Vec::new(), &mut |s, element, _| {
            let number = s.number_of(&AffineExpr::symbol(element))?;
            body(s, s.lanes_of(number)).map(|()| Vec::new())
        })?;
        Ok(())
    }

    /// Stores an element of a query's result.
    fn store_attention<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (kernel, batch): (&AttentionKernel<'m>, &[AffineExpr]),
        query: u64,
        element: Lanes<'e, 'ctx>,
        result: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let row = AffineExpr::constant(kernel.row_of_result(query) as i64);
        let extent = kernel.result.extent(kernel.sides()[2]);
        let element = AffineExpr::symbol(s.uniform_symbol(element, Some(extent)));
        let at = match kernel.sides()[2] {
            MatmulSide::Right => [row, element],
            MatmulSide::Left => [element, row],
        };
        self.store_results(s, (&kernel.result, batch), &at, Value::new(ElementType::F32, result))
    }
}

impl AttentionKernel<'_> {
    /// Returns the index of a query among the rows of the second dot's result, whose dimensions may be permuted.
    fn row_of_result(&self, query: u64) -> u64 {
        let extents = &self.scores.free[self.sides()[0] as usize];
        let extents: Vec<u64> = extents.iter().copied().filter(|&extent| extent != 1).collect();
        let mut rest = query;
        let mut at = vec![0; extents.len()];
        for (at, extent) in at.iter_mut().zip(&extents).rev() {
            (*at, rest) = (rest % extent, rest / extent);
        }
        self.parts.rows.iter().fold(0, |number, &d| number * extents[d] + at[d])
    }
}
