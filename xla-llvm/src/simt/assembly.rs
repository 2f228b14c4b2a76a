//! Inline PTX assembly, for instructions without an LLVM intrinsic.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};

use crate::emitter::Emitter;

impl<'ctx> Emitter<'ctx> {
    /// Emits inline assembly with a result. It is marked volatile and convergent, so that LLVM neither moves it across
    /// memory accesses nor changes the control flow around it: other threads may take part in the instruction.
    pub(crate) fn assembly(
        &self,
        (text, constraints): (String, String),
        result: BasicTypeEnum<'ctx>,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Option<BasicValueEnum<'ctx>> {
        self.statement((text, constraints), Some(result), arguments)
    }

    /// Emits inline assembly without a result, with a memory clobber. Like [`assembly`](Self::assembly), it is volatile
    /// and convergent.
    pub(crate) fn effect(&self, text: &str, constraints: &str, arguments: &[BasicValueEnum<'ctx>]) {
        let separator = if constraints.is_empty() { "" } else { "," };
        self.statement((text.to_owned(), format!("{constraints}{separator}~{{memory}}")), None, arguments);
    }

    fn statement(
        &self,
        (text, constraints): (String, String),
        result: Option<BasicTypeEnum<'ctx>>,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Option<BasicValueEnum<'ctx>> {
        let types: Vec<BasicMetadataTypeEnum<'ctx>> = arguments.iter().map(|value| value.get_type().into()).collect();
        let ty = match result {
            Some(result) => result.fn_type(&types, false),
            None => self.context.void_type().fn_type(&types, false),
        };
        let assembly = self.context.create_inline_asm(ty, text, constraints, true, false, None, false);
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> = arguments.iter().map(|&value| value.into()).collect();
        let call = self.record(self.builder.build_indirect_call(ty, assembly, &arguments, ""))?;
        let convergent = Attribute::get_named_enum_kind_id("convergent");
        call.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(convergent, 0));
        call.try_as_basic_value().basic()
    }
}
