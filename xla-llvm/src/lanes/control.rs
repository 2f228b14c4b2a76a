//! Branches around rare work.

use super::Lanes;

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// On a mask: `usual`, replaced in the lanes of the mask by what `rare` emits. The rare code sits behind a branch
    /// that is taken only when a lane of the mask is set, so it costs the usual case one test.
    pub fn rarely(self, usual: Self, rare: impl FnOnce() -> Self) -> Self {
        let emitter = self.emitter;
        let any = self.any();
        let (Some(from), Some(slow), Some(join)) =
            (emitter.builder.get_insert_block(), emitter.block("rare"), emitter.block("joined"))
        else {
            return usual;
        };
        let inkwell::values::BasicValueEnum::IntValue(any) = any.raw else {
            return usual.misuse("a branch on something that is no mask");
        };
        emitter.record(emitter.builder.build_conditional_branch(any, slow, join));
        emitter.builder.position_at_end(slow);
        let replaced = self.select(rare(), usual);
        let slow_end = emitter.builder.get_insert_block().unwrap_or(slow);
        emitter.record(emitter.builder.build_unconditional_branch(join));
        emitter.builder.position_at_end(join);
        let Some(phi) = emitter.record(emitter.builder.build_phi(usual.raw.get_type(), "")) else {
            return usual;
        };
        phi.add_incoming(&[(&usual.raw, from), (&replaced.raw, slow_end)]);
        Lanes { raw: phi.as_basic_value(), ..usual }
    }
}
