//! Copies of whole arrays, for kernels that then work in place.

use inkwell::IntPredicate;
use inkwell::values::PointerValue;
use xla_hlo::{ArrayShape, Error, Result};

use crate::fused::emitter::FusedEmitter;
use crate::lanes::Scalar;

impl<'ctx> FusedEmitter<'_, 'ctx, '_> {
    /// Copies an array, unless source and destination are the same.
    pub(crate) fn copy_array(&mut self, shape: &ArrayShape, places: [PointerValue<'ctx>; 2]) -> Result<()> {
        let [from, to] = places;
        let apart = self.emitter.builder().build_int_compare(IntPredicate::NE, from, to, "");
        let apart = apart.map_err(|reason| Error::internal(format!("pointers cannot be compared: {reason}")))?;
        let apart = self.emitter.lanes(apart);
        // Copy as integers: floating-point registers may change the bits of a NaN.
        let bytes = shape.element_type().real_part().byte_width();
        let count = shape.element_count() * shape.element_type().byte_width() / bytes;
        self.when(apart, &[], |s| {
            s.emitter.copy(places, Scalar::Int(8 * bytes as u32), s.number(count as i64));
            Ok(Vec::new())
        })?;
        Ok(())
    }
}
