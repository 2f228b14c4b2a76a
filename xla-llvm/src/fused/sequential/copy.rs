//! Copies of whole arrays, for kernels that go on with them in place.

use inkwell::IntPredicate;
use inkwell::values::PointerValue;
use xla_hlo::{ArrayShape, ElementType, Error, InstrId, Result};

use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::tuning::fitting;
use crate::fused::value::Source;

impl<'ctx> FusedEmitter<'_, 'ctx, '_> {
    /// Copies an array, unless it is there already.
    pub(crate) fn copy_array(
        &mut self,
        root: InstrId,
        shape: &ArrayShape,
        [from, to]: [PointerValue<'ctx>; 2],
    ) -> Result<()> {
        let apart = self.emitter.builder().build_int_compare(IntPredicate::NE, from, to, "");
        let apart = apart.map_err(|reason| Error::internal(format!("pointers cannot be compared: {reason}")))?;
        let apart = self.emitter.lanes(apart);
        // As integers: floating-point registers may change the bits of a NaN.
        let ty = integer(shape.element_type());
        let parts = if shape.element_type().is_complex() { 2 } else { 1 };
        let count = parts * shape.element_count();
        let line = |base| Source { base, shape: ArrayShape::new(ty, [count]) };
        let (from, to) = (line(from), line(to));
        let width = fitting(self.emitter.target().lanes(ty.bit_width() as u32), count as u64);
        self.when(apart, &[], |s| {
            let range = s.full_range(count as u64, width);
            s.for_each(range, Vec::new(), &mut |s, at, _| {
                let at = vec![AffineExpr::symbol(at)];
                let element = s.load(root, &from, &at)?;
                s.store(&to, &at, element).map(|()| Vec::new())
            })
        })?;
        Ok(())
    }
}

/// The unsigned integer of as many bits as a number of that type takes in memory.
fn integer(ty: ElementType) -> ElementType {
    match ty.real_part().byte_width() {
        1 => ElementType::U8,
        2 => ElementType::U16,
        4 => ElementType::U32,
        _ => ElementType::U64,
    }
}
