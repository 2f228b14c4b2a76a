//! Scans: running totals along one dimension, each computed from the one before.
//!
//! Neighbouring fibers are lanes, and any combiner is applied in order. Along the innermost dimension, lanes are
//! neighbours in one fiber: an associative combiner scans a register in `log2(lanes)` steps, each of which doubles the
//! distance of the combined lanes; then the total of all previous registers is combined in.

use xla_hlo::ops::{BinaryOp, Cumulative, ReduceWindow, simple_combiner};
use xla_hlo::{ElementType, Error, InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::tuning::fitting;
use crate::fused::value::Source;

/// Scan that is being emitted.
struct Scan<'a, 'ctx> {
    root: InstrId,
    op: &'a ReduceWindow,
    shape: Cumulative,
    size: u64,
    index: Index,
    results: &'a [Source<'ctx>],
}

impl Scan<'_, '_> {
    /// Returns the index of the element at a step.
    fn at(&self, step: AffineExpr) -> Index {
        let mut index = self.index.clone();
        index[self.shape.dimension] = match self.shape.from_end {
            true => step.scaled(-1).shifted(self.size as i64 - 1),
            false => step,
        };
        index
    }
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Stores the running totals of the fibers at an index.
    pub(crate) fn scan(
        &mut self,
        root: InstrId,
        op: &ReduceWindow,
        dims: &[usize],
        index: Index,
        results: &[Source<'ctx>],
    ) -> Result<()> {
        let shape = op
            .window
            .cumulative(dims)
            .ok_or_else(|| Error::internal(format!("scan %{} has no direction", self.graph()[root].name())))?;
        let size = dims[shape.dimension] as u64;
        let scan = Scan { root, op, shape, size, index, results };
        let innermost = dims[shape.dimension + 1..].iter().all(|&d| d == 1);
        match simple_combiner(&self.module[op.computation]) {
            Some(combiner) if innermost => self.scan_lanes(&scan, combiner),
            Some(_) | None => self.scan_steps(&scan),
        }
    }

    fn scan_steps(&mut self, scan: &Scan<'_, 'ctx>) -> Result<()> {
        let width = self.width(&scan.index);
        let operands = self.graph()[scan.root].operands();
        let inputs = &operands[..operands.len() / 2];
        let starts = self.reduction_starts(scan.root, width)?;
        let types: Vec<ElementType> = starts.iter().map(Value::element_type).collect();
        let steps = self.full_range(scan.size, 1);
        self.for_each(steps, raws_of(&starts), &mut |s, step, carried| {
            let at = scan.at(AffineExpr::symbol(step));
            let mut arguments = values_of(s, &types, carried);
            for &input in inputs {
                arguments.push(s.element(input, &at)?.splat(width));
            }
            let totals = s.call(scan.op.computation, &arguments)?;
            for (&total, result) in totals.iter().zip(scan.results) {
                s.store(result, &at, total)?;
            }
            Ok(raws_of(&totals))
        })?;
        Ok(())
    }

    fn scan_lanes(&mut self, scan: &Scan<'_, 'ctx>, combiner: BinaryOp) -> Result<()> {
        let [result] = scan.results else {
            return Err(Error::internal(format!("scan of one array has {} results", scan.results.len())));
        };
        let input = self.graph()[scan.root].operand(0);
        let ty = result.shape.element_type();
        let lanes = self.emitter.target().lanes(crate::fused::core::address::compute_bits(ty));
        let lanes = fitting(lanes, scan.size);
        let starts = self.reduction_starts(scan.root, lanes)?;
        let steps = self.full_range(scan.size, lanes);
        self.for_each(steps, raws_of(&starts), &mut |s, step, carried| {
            let at = scan.at(AffineExpr::symbol(step));
            let x = s.element(input, &at)?.splat(lanes);
            let x = elemental::convert(s.emitter, x, ty)?;
            let within = s.scan_register(combiner, x, lanes)?;
            let before = Value::from_raws(s.emitter, ty, carried);
            let totals = elemental::binary(s.emitter, combiner, before, within)?;
            s.store(result, &at, totals)?;
            // Carry the register's own total, so that the dependency chain between iterations is a single operation.
            let all = if lanes == 1 { within } else { within.permuted(&vec![lanes - 1; lanes as usize]) };
            Ok(elemental::binary(s.emitter, combiner, before, all)?.raws())
        })?;
        Ok(())
    }

    /// Returns the running totals of the lanes of one value.
    pub(crate) fn scan_register(
        &self,
        combiner: BinaryOp,
        mut x: Value<'e, 'ctx>,
        lanes: u32,
    ) -> Result<Value<'e, 'ctx>> {
        let mut distance = 1;
        while distance < lanes {
            let from: Vec<u32> = (0..lanes).map(|lane| lane.saturating_sub(distance)).collect();
            let both = elemental::binary(self.emitter, combiner, x.permuted(&from), x)?;
            let has_before = self.emitter.lane_numbers(32, lanes).uge(i64::from(distance));
            x = elemental::select_lanes(has_before, both, x);
            distance *= 2;
        }
        Ok(x)
    }
}
