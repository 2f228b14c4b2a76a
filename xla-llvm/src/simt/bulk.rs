//! Copies of whole boxes of an array into shared memory, which one thread begins (`cp.async.bulk.tensor` of the PTX
//! ISA), and the parameters that describe the arrays.

use std::ops::Range;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::{BasicValueEnum, FunctionValue, PointerValue};
use xla_hlo::{Error, Result};

use super::TensorMap;
use crate::emitter::Emitter;

/// Bytes of an encoded map, and what their address is a multiple of.
const MAP_BYTES: u32 = 128;
const ENCODED_ALIGNMENT: u32 = 64;

impl<'ctx> Emitter<'ctx> {
    /// Makes the parameters of a PTX kernel that are in a range maps: 128 bytes each, which nobody writes to.
    pub(super) fn are_maps(&self, function: FunctionValue<'ctx>, parameters: Range<usize>) {
        let bytes = self.context.i8_type().array_type(MAP_BYTES);
        let by_value = self.context.create_type_attribute(Attribute::get_named_enum_kind_id("byval"), bytes.into());
        let aligned = Attribute::get_named_enum_kind_id("align");
        let aligned = self.context.create_enum_attribute(aligned, ENCODED_ALIGNMENT.into());
        let constant = self.context.create_string_attribute("nvvm.grid_constant", "");
        for parameter in parameters {
            for attribute in [by_value, aligned, constant] {
                function.add_attribute(AttributeLoc::Param(parameter as u32), attribute);
            }
        }
    }

    /// The next parameter of the kernel that is being written that is a map.
    fn tensor_map(&self, map: TensorMap) -> Result<PointerValue<'ctx>> {
        let number = self.use_map(map)?;
        let function = self.builder.get_insert_block().and_then(|block| block.get_parent());
        let missing = || Error::internal("a kernel lacks a map");
        let function = function.ok_or_else(missing)?;
        let first = function.count_params() as usize - self.map_count();
        match function.get_nth_param((first + number) as u32) {
            Some(BasicValueEnum::PointerValue(map)) => Ok(map),
            _ => Err(missing()),
        }
    }
}
