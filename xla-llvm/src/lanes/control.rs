//! Branches around rare work, and functions of the module for it.

use inkwell::values::{AnyValue, AnyValueEnum, BasicMetadataValueEnum, BasicValueEnum, ValueKind};
use xla_hlo::Error;

use super::Lanes;
use crate::emitter::Emitter;

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// On a mask: the `usual` values, replaced in the lanes of the mask by what `rare` emits. The rare code sits behind
    /// a branch that is taken only when a lane of the mask is set, so it costs the usual case one test.
    pub fn rarely<const N: usize>(self, usual: [Self; N], rare: impl FnOnce() -> [Self; N]) -> [Self; N] {
        let emitter = self.emitter;
        let any = self.any();
        let (Some(from), Some(slow), Some(join)) =
            (emitter.builder.get_insert_block(), emitter.block("rare"), emitter.block("joined"))
        else {
            return usual;
        };
        let BasicValueEnum::IntValue(any) = any.raw else {
            self.misuse("a branch on something that is no mask");
            return usual;
        };
        emitter.record(emitter.builder.build_conditional_branch(any, slow, join));
        emitter.builder.position_at_end(slow);
        let rare = rare();
        let replaced: [Self; N] = std::array::from_fn(|i| self.select(rare[i], usual[i]));
        let slow_end = emitter.builder.get_insert_block().unwrap_or(slow);
        emitter.record(emitter.builder.build_unconditional_branch(join));
        emitter.builder.position_at_end(join);
        std::array::from_fn(|i| {
            let Some(phi) = emitter.record(emitter.builder.build_phi(usual[i].raw.get_type(), "")) else {
                return usual[i];
            };
            phi.add_incoming(&[(&usual[i].raw, from), (&replaced[i].raw, slow_end)]);
            Lanes { raw: phi.as_basic_value(), ..usual[i] }
        })
    }

    /// Calls a function of this module that maps lanes of this type to `N` values of this type; its body is emitted at
    /// the first call. For code that is too big to repeat wherever it may be needed. `name` and the type of the lanes
    /// must say everything that the body depends on.
    pub fn outlined<const N: usize>(
        self,
        name: &str,
        body: impl for<'f> FnOnce(Lanes<'f, 'ctx>) -> [Lanes<'f, 'ctx>; N],
    ) -> [Self; N] {
        let emitter = self.emitter;
        let name = format!("{name}.{}x{:?}", self.width(), self.scalar()).to_lowercase();
        let kind = self.raw.get_type();
        let result = emitter.context.struct_type(&[kind; N], false);
        let function = emitter.helper(&name, &[kind], result.into(), |emitter, parameters| {
            let [parameter] = parameters else {
                return result.const_zero().into();
            };
            emitter.pack(result.const_zero().into(), &body(Lanes::new(emitter, *parameter)))
        });
        let argument: BasicMetadataValueEnum<'ctx> = self.raw.into();
        let call = emitter.record(emitter.builder.build_call(function, &[argument], ""));
        let Some(ValueKind::Basic(BasicValueEnum::StructValue(results))) = call.map(|call| call.try_as_basic_value())
        else {
            return [self; N];
        };
        std::array::from_fn(|i| {
            let field =
                u32::try_from(i).ok().and_then(|i| emitter.record(emitter.builder.build_extract_value(results, i, "")));
            field.map_or(self, |raw| Lanes { raw, ..self })
        })
    }
}

impl<'ctx> Emitter<'ctx> {
    fn pack(&self, empty: BasicValueEnum<'ctx>, fields: &[Lanes<'_, 'ctx>]) -> BasicValueEnum<'ctx> {
        let BasicValueEnum::StructValue(mut packed) = empty else {
            return empty;
        };
        for (i, field) in (0..).zip(fields) {
            let inserted = self.record(self.builder.build_insert_value(packed, field.raw, i, ""));
            match inserted.map(|value| value.as_any_value_enum()) {
                Some(AnyValueEnum::StructValue(value)) => packed = value,
                _ => self.fail(Error::internal("an outlined function's result could not be put together")),
            }
        }
        packed.into()
    }
}
