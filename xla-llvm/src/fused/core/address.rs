//! Run-time coordinates as scalars, strided lanes, or one number per lane; loads and stores at them.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{ElementType, Error, InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index, SymbolId, position};
use crate::fused::tuning::FEW_ADDRESSES;
use crate::fused::value::{Source, SymbolValue};
use crate::lanes::Lanes;

/// Run-time value of a coordinate, 64 bits per lane.
#[derive(Clone, Copy)]
pub(crate) enum Number<'e, 'ctx> {
    /// One number for all lanes.
    Uniform(Lanes<'e, 'ctx>),
    /// `base + stride · lane number`.
    Strided { base: Lanes<'e, 'ctx>, stride: i64, width: u32 },
    /// One number per lane.
    Varying(Lanes<'e, 'ctx>),
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Emits code for the value of a coordinate.
    pub(crate) fn number_of(&mut self, expr: &AffineExpr) -> Result<Number<'e, 'ctx>> {
        let mut uniform = AffineExpr::constant(expr.offset());
        let mut stride = 0;
        let mut width = 1;
        let mut varying: Option<Lanes<'e, 'ctx>> = None;
        for (id, c) in expr.terms() {
            let term = AffineExpr::symbol(id).scaled(c);
            match self.symbol_value(id) {
                SymbolValue::Uniform(_) => uniform = uniform.plus(&term),
                SymbolValue::Lane { width: lanes, .. } => {
                    uniform = uniform.plus(&term);
                    stride += c;
                    width = lanes;
                }
                SymbolValue::Varying { lanes, .. } => {
                    let scaled = lanes * c;
                    varying = Some(varying.map_or(scaled, |v| v + scaled));
                }
            }
        }
        let base = self.uniform_number(&uniform)?;
        Ok(match varying {
            Some(varying) => {
                let lanes = varying.width();
                let rest = if stride == 0 { base.splat(lanes) } else { self.spread(base, stride, lanes) };
                Number::Varying(varying + rest)
            }
            None if stride != 0 => Number::Strided { base, stride, width },
            None => Number::Uniform(base),
        })
    }

    /// Returns `base + stride · lane number` for each lane.
    fn spread(&self, base: Lanes<'e, 'ctx>, stride: i64, width: u32) -> Lanes<'e, 'ctx> {
        base.splat(width) + self.emitter.lane_numbers(64, width) * stride
    }

    /// Returns the lanes of a number.
    pub(crate) fn lanes_of(&self, number: Number<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        match number {
            Number::Uniform(lanes) | Number::Varying(lanes) => lanes,
            Number::Strided { base, stride, width } => self.spread(base, stride, width),
        }
    }

    /// Emits the scalar part of a coordinate, with each partial sum hoisted as far out as its symbols allow.
    fn uniform_number(&mut self, expr: &AffineExpr) -> Result<Lanes<'e, 'ctx>> {
        if let Some(known) = self.known_position(expr) {
            return Ok(known);
        }
        let deepest = expr.terms().max_by_key(|&(id, _)| (self.symbols.get(id).level, id));
        let Some((id, c)) = deepest else {
            return Ok(self.number(expr.offset()));
        };
        let rest = expr.clone().plus(&AffineExpr::symbol(id).scaled(-c));
        let rest = self.uniform_number(&rest)?;
        let (SymbolValue::Uniform(value)
        | SymbolValue::Lane { base: value, .. }
        | SymbolValue::Varying { lanes: value, .. }) = self.symbol_value(id);
        let level = self.symbols.get(id).level;
        let local = self.local_level();
        let sum = self.at_level(level.max(local), |_| Ok(if c == 1 { value + rest } else { value * c + rest }))?;
        match self.local_positions.iter_mut().rfind(|branch| branch.level == local) {
            Some(branch) => branch.known.insert(expr.clone(), sum),
            None => self.positions.insert(expr.clone(), sum),
        };
        Ok(sum)
    }

    /// Returns the value of a coordinate that was already computed in a block that dominates the current one.
    fn known_position(&self, expr: &AffineExpr) -> Option<Lanes<'e, 'ctx>> {
        let depth = self.depth();
        let branches = self.local_positions.iter().rev().filter(|branch| branch.level <= depth);
        let mut known = branches.filter_map(|branch| branch.known.get(expr));
        known.next().or_else(|| self.positions.get(expr)).copied()
    }

    /// Returns the level of the innermost branch of a large branch tree around the current code, or 0 outside of such
    /// trees. Numbers that few elements need are not hoisted out of their branch.
    pub(crate) fn local_level(&self) -> usize {
        let depth = self.depth();
        self.local_positions.iter().map(|branch| branch.level).rfind(|&level| level <= depth).unwrap_or(0)
    }

    /// Returns the lanes of a coordinate for arithmetic with the numbers `with`.
    ///
    /// On GPUs, 64-bit arithmetic takes several 32-bit instructions. The lanes are truncated to 32 bits if all numbers
    /// fit.
    pub(crate) fn short_lanes(&mut self, expr: &AffineExpr, with: &[i64]) -> Result<Lanes<'e, 'ctx>> {
        let number = self.number_of(expr)?;
        let lanes = self.lanes_of(number);
        let fits = expr.fits_32_bits(&self.symbols) && with.iter().all(|&number| i32::try_from(number).is_ok());
        Ok(if fits && self.emitter.target().simt().is_some() { lanes.trunc(32) } else { lanes })
    }

    /// Loads the element of `id` at an index of its array in memory.
    pub(crate) fn load(&mut self, id: InstrId, source: &Source<'ctx>, index: &Index) -> Result<Value<'e, 'ctx>> {
        let ty = source.shape.element_type();
        let at = position(index, &strides_of(&source.shape));
        if let Some((base, at)) = self.in_shared_tile(id, source, &at)? {
            return Ok(elemental::load(self.emitter, base, at, ty, 1, None));
        }
        if let Some((base, at, width)) = self.in_tile(id, source, &at)? {
            return Ok(elemental::load(self.emitter, base, at, ty, width, None));
        }
        let number = self.number_of(&at)?;
        let address = self.address_of(source, index)?;
        let (number, mask) = match self.emitter.target().simt() {
            Some(_) => self.branchless(source, number, self.load_mask(index)),
            None => self.inside_array(source, number, &at, index),
        };
        Ok(match number {
            Number::Uniform(at) => {
                // The guard has several lanes and there is one address: the element is needed if any lane needs it.
                let mask = mask.map(Lanes::any);
                elemental::load(self.emitter, address, at, ty, 1, mask)
            }
            Number::Strided { base, stride: 1, width } if mask.is_none() && self.is_aligned(&at, width) => {
                elemental::load_aligned(self.emitter, address, base, ty, width)
            }
            Number::Strided { base, stride: 1, width } => {
                elemental::load(self.emitter, address, base, ty, width, mask.map(|m| widened(m, width)))
            }
            Number::Strided { stride: -1, base, width } => {
                let first = base - i64::from(width - 1);
                let mask = mask.map(|m| widened(m, width).reversed());
                elemental::load(self.emitter, address, first, ty, width, mask).reversed()
            }
            Number::Strided { width, .. } => {
                let indices = self.lanes_of(number);
                elemental::gather(self.emitter, address, indices, ty, mask.map(|m| widened(m, width)))
            }
            Number::Varying(indices) => {
                let width = indices.width();
                elemental::gather(self.emitter, address, indices, ty, mask.map(|m| widened(m, width)))
            }
        })
    }

    /// Returns the address of an array. Inside a large branch tree, vector code loads the address again if the kernel
    /// has more addresses than registers: otherwise each address would be live in all branches, and register allocation
    /// would take quadratic time. Operand loops load addresses from a table. Those are not loaded again, since their
    /// numbers in the function differ from those in `pointers`.
    fn address_of(&self, source: &Source<'ctx>, index: &[AffineExpr]) -> Result<PointerValue<'ctx>> {
        let is_near = self.pointers.len() <= FEW_ADDRESSES || self.local_level() == 0 || self.width(index) == 1;
        if is_near || self.emitter.target().simt().is_some() {
            return Ok(source.base);
        }
        let number = self.pointers.iter().position(|&pointer| pointer == source.base);
        let function = self.current_block()?.get_parent();
        let entry = function.and_then(|function| function.get_first_basic_block());
        let is_of_function = source.base.as_instruction().and_then(|load| load.get_parent()) == entry;
        match (number, function.and_then(|function| function.get_first_param())) {
            (Some(number), Some(BasicValueEnum::PointerValue(array))) if is_of_function => {
                self.emitter.load_pointer(array, number)
            }
            _ => Ok(source.base),
        }
    }

    /// Replaces a guarded read that all lanes need or none by an unconditional one on GPUs: it reads the first element
    /// of the array if it is not needed. Without branches, many loads are in flight at once.
    fn branchless(
        &self,
        source: &Source<'ctx>,
        number: Number<'e, 'ctx>,
        mask: Option<Lanes<'e, 'ctx>>,
    ) -> (Number<'e, 'ctx>, Option<Lanes<'e, 'ctx>>) {
        let is_empty = source.shape.dims().contains(&0);
        let (Some(wanted), false) = (mask, is_empty) else {
            return (number, mask);
        };
        // A needed element is inside of the array, so its position fits if that of the last element does.
        let bits = if i32::try_from(source.shape.element_count()).is_ok() { 32 } else { 64 };
        let zero = self.number(0).trunc_to(bits);
        let or_first = |wanted: Lanes<'e, 'ctx>, at: Lanes<'e, 'ctx>| {
            let at = wanted.select(at.trunc_to(bits), zero);
            if bits < 64 { at.zext(64) } else { at }
        };
        match number {
            Number::Uniform(at) => (Number::Uniform(or_first(wanted.any(), at)), None),
            Number::Strided { base, stride: 1, width } if wanted.width() == 1 => {
                (Number::Strided { base: or_first(wanted, base), stride: 1, width }, None)
            }
            Number::Strided { .. } | Number::Varying(_) => (number, mask),
        }
    }

    /// Moves a read that no lane needs to the first elements of the array, on CPUs. A masked access with an empty mask
    /// does not fault, but takes hundreds of cycles if the page is not mapped.
    fn inside_array(
        &self,
        source: &Source<'ctx>,
        number: Number<'e, 'ctx>,
        at: &AffineExpr,
        index: &Index,
    ) -> (Number<'e, 'ctx>, Option<Lanes<'e, 'ctx>>) {
        let mask = self.load_mask(index);
        let (Some(guard), Some(wanted)) = (self.guard.checked_sub(1).map(|guard| self.guards[guard].mask), mask) else {
            return (number, mask);
        };
        let Number::Strided { base, stride: stride @ (1 | -1), width } = number else { return (number, mask) };
        let (elements, reach) = (source.shape.element_count() as i64, i64::from(width));
        let is_near = at.bounds(&self.symbols).is_some_and(|(low, high)| low >= -reach && high < elements + reach);
        if guard.is_always() || is_near || elements < reach || !self.emitter.target().abilities().masked_memory {
            return (number, mask);
        }
        let first = self.number(if stride == 1 { 0 } else { reach - 1 });
        if guard.width() == 1 {
            let base = guard.select(base, first);
            return (Number::Strided { base, stride, width }, self.existing_lanes(index));
        }
        (Number::Strided { base: wanted.any().select(base, first), stride, width }, mask)
    }

    /// Stores an element; its width is the index's or 1.
    pub(crate) fn store(&mut self, target: &Source<'ctx>, index: &Index, value: Value<'e, 'ctx>) -> Result<()> {
        let at = position(index, &strides_of(&target.shape));
        let number = self.number_of(&at)?;
        let mask = self.load_mask(index);
        match number {
            Number::Uniform(_) if value.width() > 1 => {
                return Err(Error::internal(format!("{} lanes are stored at one index", value.width())));
            }
            Number::Uniform(at) => elemental::store(self.emitter, value, target.base, at, mask.map(Lanes::any)),
            Number::Strided { base, stride: 1, width } if mask.is_none() && self.is_aligned(&at, width) => {
                elemental::store_aligned(self.emitter, value.splat(width), target.base, base);
            }
            Number::Strided { base, stride: 1, width } => {
                let mask = mask.map(|m| widened(m, width));
                elemental::store(self.emitter, value.splat(width), target.base, base, mask);
            }
            Number::Strided { base, stride: -1, width } => {
                let first = base - i64::from(width - 1);
                let mask = mask.map(|m| widened(m, width).reversed());
                elemental::store(self.emitter, value.splat(width).reversed(), target.base, first, mask);
            }
            Number::Strided { width, .. } => {
                let indices = self.lanes_of(number);
                let mask = mask.map(|m| widened(m, width));
                elemental::scatter(self.emitter, value.splat(width), target.base, indices, mask);
            }
            Number::Varying(indices) => {
                let width = indices.width();
                let mask = mask.map(|m| widened(m, width));
                elemental::scatter(self.emitter, value.splat(width), target.base, indices, mask);
            }
        }
        Ok(())
    }

    /// Returns the position without a tile's two loops, and the stride along its lanes, of an array that is contiguous
    /// along the rows but not along the lanes; `None` for other arrays, and if other symbols are defined inside the
    /// tile's level.
    pub(crate) fn transposed(
        &self,
        at: &AffineExpr,
        [row, lane]: [SymbolId; 2],
        level: usize,
    ) -> Option<(AffineExpr, i64)> {
        let step = at.coefficient(lane);
        let rest = at.with_symbol(row, &AffineExpr::default()).with_symbol(lane, &AffineExpr::default());
        let is_transposed = at.coefficient(row) == 1 && step.unsigned_abs() > 1 && self.guard == 0;
        (is_transposed && rest.level(&self.symbols) <= level).then_some((rest, step))
    }

    /// Whether a position of `width` consecutive lanes is known to be a multiple of the width. All lane loops start at
    /// such multiples on targets that need this fact.
    fn is_aligned(&self, at: &AffineExpr, width: u32) -> bool {
        let width = i64::from(width);
        let is_multiple =
            |(id, c): (_, i64)| matches!(self.symbol_value(id), SymbolValue::Lane { .. }) || c % width == 0;
        self.emitter.target().simt().is_some()
            && (width & (width - 1)) == 0
            && at.offset() % width == 0
            && at.terms().all(is_multiple)
    }

    /// Returns the mask of lanes that may access memory: they exist, and the guard holds.
    fn load_mask(&self, index: &[AffineExpr]) -> Option<Lanes<'e, 'ctx>> {
        let existing = self.existing_lanes(index);
        let wanted = (self.guard > 0).then(|| self.guards[self.guard - 1].mask).filter(|mask| !mask.is_always());
        match (existing, wanted) {
            (Some(a), Some(b)) => {
                let width = a.width().max(b.width());
                Some(widened(a, width) & widened(b, width))
            }
            (a, b) => a.or(b),
        }
    }
}

/// Broadcasts a mask of one lane to `width` lanes.
pub(crate) fn widened<'e, 'ctx>(mask: Lanes<'e, 'ctx>, width: u32) -> Lanes<'e, 'ctx> {
    if mask.width() == width { mask } else { mask.splat(width) }
}

/// Returns the strides of an array in elements, by its layout.
pub(crate) fn strides_of(shape: &xla_hlo::ArrayShape) -> Vec<usize> {
    xla_hlo::strides(shape.dims(), &shape.minor_to_major())
}

/// Returns the width in bits of a lane in computations with this type: narrow floats compute in f32.
pub(crate) fn compute_bits(ty: ElementType) -> u32 {
    use xla_hlo::ElementKind;
    match ty.kind() {
        ElementKind::Float => ty.bit_width().max(32) as u32,
        ElementKind::Complex => ty.real_part().bit_width() as u32,
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => ty.bit_width().max(8) as u32,
    }
}
