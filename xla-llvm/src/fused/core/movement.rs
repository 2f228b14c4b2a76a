//! Data movement: index arithmetic, and guards for elements with several possible sources.

use xla_hlo::ops::Op;
use xla_hlo::{Error, InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine;
use crate::fused::loops::affine::{AffineExpr, Index, position, reshape_groups};
use crate::fused::value::Guard;
use crate::lanes::Lanes;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    pub(crate) fn moved(&mut self, id: InstrId, index: &Index) -> Result<Value<'e, 'ctx>> {
        let instruction = &self.graph()[id];
        let operand = instruction.operands().first().copied();
        let first = || operand.ok_or_else(|| Error::internal(format!("%{} has no operand", instruction.name())));
        match instruction.op() {
            Op::Broadcast(b) => self.element(first()?, &affine::broadcast(index, &b.dimensions)),
            Op::Transpose(t) => self.element(first()?, &affine::transpose(index, &t.permutation)),
            Op::Slice(s) => self.element(first()?, &affine::slice(index, &s.ranges)),
            Op::Reverse(r) => {
                let dims = instruction.shape().expect_array()?.dims();
                self.element(first()?, &affine::reverse(index, &r.dimensions, dims))
            }
            Op::Reshape(_) | Op::Bitcast(_) => {
                let operand = first()?;
                let index = self.reshaped(operand, id, index)?;
                self.element(operand, &index)
            }
            Op::Iota(iota) => {
                let ty = instruction.shape().expect_array()?.element_type();
                self.coordinate_value(&index[iota.dimension], ty)
            }
            Op::Pad(_) => self.padded(id, index),
            Op::Concatenate(c) => self.concatenated(id, c.dimension, index),
            Op::DynamicSlice(d) => {
                let operand = first()?;
                let starts = self.starts(id, 1, operand, &d.sizes)?;
                let index: Index = index.iter().zip(&starts).map(|(c, s)| c.clone().plus(s)).collect();
                self.element(operand, &index)
            }
            Op::DynamicUpdateSlice(_) => self.updated(id, index),
            other => {
                Err(Error::internal(format!("%{} ({}) is not a data movement", instruction.name(), other.opcode())))
            }
        }
    }
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Returns the operand's index for an element of a reshape: delinearizes the position within each group of
    /// dimensions.
    fn reshaped(&mut self, from: InstrId, to: InstrId, index: &Index) -> Result<Index> {
        let from = self.graph()[from].shape().expect_array()?.dims();
        let to = self.graph()[to].shape().expect_array()?.dims();
        let mut operand = Vec::with_capacity(from.len());
        for (inside, outside) in reshape_groups(from, to) {
            let strides = affine::row_major_strides(&to[outside.clone()]);
            let mut rest = position(&index[outside], &strides);
            let sizes = &from[inside];
            let mut exprs = vec![AffineExpr::default(); sizes.len()];
            for (i, &size) in sizes.iter().enumerate().rev() {
                if i == 0 {
                    exprs[0] = std::mem::take(&mut rest);
                } else if size > 1 {
                    let (quotient, remainder) = self.divide(&rest, size as i64)?;
                    exprs[i] = remainder;
                    rest = quotient;
                }
            }
            operand.extend(exprs);
        }
        Ok(operand)
    }

    fn padded(&mut self, id: InstrId, index: &Index) -> Result<Value<'e, 'ctx>> {
        let instruction = &self.graph()[id];
        let Op::Pad(pad) = instruction.op() else {
            return Err(Error::internal(format!("%{} is not a pad", instruction.name())));
        };
        let (operand, value) = (instruction.operand(0), instruction.operand(1));
        let width = self.width(index);
        let dims = self.graph()[operand].shape().expect_array()?.dims();
        let value = self.element(value, &Vec::new())?.splat(width);
        if dims.contains(&0) {
            return Ok(value);
        }
        let mut inside = Vec::with_capacity(dims.len());
        let mut conditions = None;
        for ((expr, p), &size) in affine::pad(index, &pad.dims).into_iter().zip(&pad.dims).zip(dims) {
            let step = p.interior as i64 + 1;
            let last = (size as i64 - 1) * step;
            self.require_between(&mut conditions, &expr, 0, last)?;
            if step == 1 {
                inside.push(expr);
            } else {
                inside.push(self.on_grid(&mut conditions, &expr, step, size)?);
            }
        }
        self.choose(conditions, width, operand, &inside, value)
    }

    /// Returns the quotient of a coordinate by `step`, and adds the condition that there is no remainder.
    pub(crate) fn on_grid(
        &mut self,
        conditions: &mut Option<Guard<'e, 'ctx>>,
        expr: &AffineExpr,
        step: i64,
        size: usize,
    ) -> Result<AffineExpr> {
        let level = expr.level(&self.symbols);
        let mask = self.existing_lanes(std::slice::from_ref(expr));
        let (quotient, exact) = self.at_level(level, |s| {
            let number = s.number_of(expr)?;
            let lanes = s.lanes_of(number);
            let quotient = lanes.sdiv(step);
            Ok((quotient, (quotient * step).eq(lanes)))
        })?;
        self.require(conditions, Guard { mask: exact, level })?;
        Ok(self.computed(quotient, mask, Some(size as u64), level))
    }

    /// Returns the starts of a dynamic slice or update, clamped so that a slice of `sizes` fits into `operand`.
    ///
    /// They are scalars that every element needs, so they are hoisted out of all loops and guards.
    pub(crate) fn starts(
        &mut self,
        id: InstrId,
        first: usize,
        operand: InstrId,
        sizes: &[usize],
    ) -> Result<Vec<AffineExpr>> {
        if let Some(known) = self.slice_starts.get(&id) {
            return Ok(known.clone());
        }
        let starts: Vec<InstrId> = self.graph()[id].operands()[first..].to_vec();
        let vector = starts.len() == 1 && self.graph()[starts[0]].shape().expect_array()?.rank() == 1;
        let dims = self.graph()[operand].shape().expect_array()?.dims();
        let outer = (std::mem::take(&mut self.guard), std::mem::take(&mut self.branch));
        let mut exprs = Vec::with_capacity(dims.len());
        for (d, (&dim, &size)) in dims.iter().zip(sizes).enumerate() {
            let room = dim.saturating_sub(size) as u64;
            if room == 0 {
                exprs.push(AffineExpr::default());
                continue;
            }
            let (start, index) =
                if vector { (starts[0], vec![AffineExpr::constant(d as i64)]) } else { (starts[d], Vec::new()) };
            let value = self.element(start, &index)?;
            exprs.push(self.clamped(value, room, 0, None)?);
        }
        (self.guard, self.branch) = outer;
        self.slice_starts.insert(id, exprs.clone());
        Ok(exprs)
    }

    /// Clamps an integer value of `level` to `0..=room` in its own signedness, as a coordinate.
    pub(crate) fn clamped(
        &mut self,
        value: Value<'e, 'ctx>,
        room: u64,
        level: usize,
        mask: Option<Lanes<'e, 'ctx>>,
    ) -> Result<AffineExpr> {
        self.at_level(level, |s| {
            let lanes = elemental::clamped_index(value, room);
            Ok(s.computed(lanes, mask, Some(room + 1), level))
        })
    }

    /// Computes an element of a dynamic-update-slice that is not in place.
    fn updated(&mut self, id: InstrId, index: &Index) -> Result<Value<'e, 'ctx>> {
        let instruction = &self.graph()[id];
        let (operand, update) = (instruction.operand(0), instruction.operand(1));
        let sizes = self.graph()[update].shape().expect_array()?.dims().to_vec();
        let width = self.width(index);
        let old = self.element(operand, index)?;
        if sizes.contains(&0) {
            return Ok(old);
        }
        let starts = self.starts(id, 2, operand, &sizes)?;
        let mut conditions = None;
        let mut inside = Vec::with_capacity(sizes.len());
        for ((expr, start), &size) in index.iter().zip(&starts).zip(&sizes) {
            let expr = expr.clone().plus(&start.clone().scaled(-1));
            self.require_between(&mut conditions, &expr, 0, size as i64 - 1)?;
            inside.push(expr);
        }
        self.choose(conditions, width, update, &inside, old)
    }
}
