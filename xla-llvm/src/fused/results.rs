//! Results of a kernel: binds arrays to pointers, computes all results at an index, and stores them.

use inkwell::values::PointerValue;
use xla_hlo::{ArrayShape, Error, InstrId, Result};

use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::core::addressing::Addressing;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::Index;
use crate::fused::value::Source;

/// Number of a result, index of an element of it, and the element's value.
pub(crate) type Computed<'e, 'ctx> = (usize, Index, Value<'e, 'ctx>);

impl<'m> FusedKernel<'_, 'm> {
    /// Returns a new emitter at the function's entry, with operands bound to its pointers.
    pub fn bind<'e, 'ctx>(
        &self,
        emitter: &'e Emitter<'ctx>,
        pointers: Vec<PointerValue<'ctx>>,
    ) -> Result<FusedEmitter<'e, 'ctx, 'm>> {
        let mut fused = FusedEmitter::new(emitter, self.source.module, self.source.computation)?;
        fused.pointers = pointers;
        for (number, &input) in self.source.inputs.iter().enumerate() {
            let shape = self.graph()[input].shape().expect_array()?.clone();
            fused.sources.insert(input, Source { base: fused.pointers[number], shape });
        }
        let results: Vec<InstrId> = self.outputs.iter().map(|o| o.root).collect();
        fused.plan_rows(&self.dims, &results);
        Ok(fused)
    }

    /// Computes all results of one iteration before storing any: a result may overwrite another one's operand.
    pub fn store_all<'e, 'ctx>(&self, fused: &mut FusedEmitter<'e, 'ctx, 'm>, index: &Index) -> Result<()> {
        if self.source.in_place {
            let root = self.source.root;
            let (operand, update) = (self.graph()[root].operand(0), self.graph()[root].operand(1));
            let starts = fused.starts(root, 2, operand, &self.dims)?;
            let value = fused.element(update, index)?;
            let at: Index = index.iter().zip(&starts).map(|(c, s)| c.clone().plus(s)).collect();
            let target = self.target(fused, 0);
            return fused.store(&target, &at, value);
        }
        fused.begin_row(index)?;
        let values = self.values(fused, index, |_| true)?;
        self.store_values(fused, values)
    }

    /// Returns the values of one iteration for the results whose rank is `wanted`, with their numbers and indices.
    pub fn values<'e, 'ctx>(
        &self,
        fused: &mut FusedEmitter<'e, 'ctx, 'm>,
        index: &Index,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<Computed<'e, 'ctx>>> {
        let mut values = Vec::with_capacity(self.outputs.len());
        for (number, output) in self.outputs.iter().enumerate().filter(|(_, o)| wanted(o.shape.rank())) {
            let index: Index = index[..output.shape.rank()].to_vec();
            let value = fused.elements(output.root, &index)?.get(output.value).copied();
            values.push((
                number,
                index,
                value.ok_or_else(|| {
                    Error::internal(format!("%{} has no value {}", fused.graph()[output.root].name(), output.value))
                })?,
            ));
        }
        Ok(values)
    }

    /// Stores the results of [`FusedKernel::values`].
    pub fn store_values<'e, 'ctx>(
        &self,
        fused: &mut FusedEmitter<'e, 'ctx, 'm>,
        values: Vec<Computed<'e, 'ctx>>,
    ) -> Result<()> {
        for (number, index, value) in values {
            let target = self.target(fused, number);
            // Not in front of the bounds check of the work item.
            let level = fused.level(&index).max(fused.item_level);
            fused.at_level(level, |s| s.store(&target, &index, value))?;
        }
        Ok(())
    }

    /// Returns the destination of a result.
    pub fn target<'ctx>(&self, fused: &FusedEmitter<'_, 'ctx, 'm>, number: usize) -> Source<'ctx> {
        let shape = self.stored_shape(number).clone();
        Source { base: fused.pointers[self.source.inputs.len() + number], shape }
    }

    /// Returns the shape whose strides apply to a result in memory.
    pub fn stored_shape(&self, number: usize) -> &ArrayShape {
        self.container.as_ref().unwrap_or(&self.outputs[number].shape)
    }
}
