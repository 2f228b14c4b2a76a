//! Control flow: branches around rare cases, outlined helper functions, and loops.

use inkwell::types::StructType;
use inkwell::values::{AnyValue, AnyValueEnum, BasicMetadataValueEnum, BasicValueEnum, FunctionValue, ValueKind};
use xla_hlo::Error;

use super::Lanes;
use super::operators::Operand;
use crate::emitter::Emitter;

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Replaces the `usual` values by the results of `rare` in the lanes of this mask. The rare code is in a branch
    /// that is taken only if any lane of the mask is set, so that the usual case costs one test.
    pub fn rarely<const N: usize>(self, usual: [Self; N], rare: impl FnOnce() -> [Self; N]) -> [Self; N] {
        let emitter = self.emitter;
        let any = self.any();
        let (Some(from), Some(slow), Some(join)) =
            (emitter.builder.get_insert_block(), emitter.block("rare"), emitter.block("joined"))
        else {
            return usual;
        };
        let BasicValueEnum::IntValue(any) = any.raw else {
            self.misuse("the condition of a branch is not a mask");
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

    /// Calls an outlined function of this module for each lane: it maps one lane to `N` values of the same type.
    ///
    /// Its scalar body is emitted at the first call. This suits large code that rarely runs: it is neither repeated at
    /// each use nor vectorized. `name` and the type of the lanes must identify all properties that the body depends on.
    pub fn lane_by_lane<const N: usize>(
        self,
        name: &str,
        body: impl for<'f> FnOnce(Lanes<'f, 'ctx>) -> [Lanes<'f, 'ctx>; N],
    ) -> [Self; N] {
        let emitter = self.emitter;
        let (scalar, width) = (self.scalar(), self.width());
        let lane = emitter.lane_type(scalar, 1);
        let name = format!("{name}.{scalar:?}").to_lowercase();
        let results = emitter.context.struct_type(&[lane; N], false);
        let function = emitter.helper(&name, &[lane], results.into(), |emitter, parameters| match parameters {
            [parameter] => emitter.pack(results, &body(Lanes::new(emitter, *parameter))),
            _ => results.const_zero().into(),
        });
        if width == 1 {
            return emitter.unpack(function, self);
        }
        let vector = self.raw.get_type();
        let vectors = emitter.context.struct_type(&[vector; N], false);
        let name = format!("{name}.x{width}");
        let function = emitter.helper(&name, &[vector], vectors.into(), |emitter, parameters| match parameters {
            [parameter] => emitter.pack(vectors, &loop_over_lanes::<N>(function, Lanes::new(emitter, *parameter))),
            _ => vectors.const_zero().into(),
        });
        emitter.unpack(function, self)
    }
}

/// Emits a loop that calls `function` for each lane of `x` and assembles the results.
fn loop_over_lanes<'e, 'ctx, const N: usize>(
    function: FunctionValue<'ctx>,
    x: Lanes<'e, 'ctx>,
) -> [Lanes<'e, 'ctx>; N] {
    let emitter = x.emitter;
    let (builder, int) = (&emitter.builder, emitter.int_type(32));
    let Some((from, body, done)) = builder
        .get_insert_block()
        .and_then(|from| emitter.block("lane").zip(emitter.block("done")).map(|(body, done)| (from, body, done)))
    else {
        return [x; N];
    };
    emitter.record(builder.build_unconditional_branch(body));
    builder.position_at_end(body);
    let phi = |kind| emitter.record(builder.build_phi(kind, ""));
    let (Some(index), Some(sums)) =
        (phi(int.into()), (0..N).map(|_| phi(x.raw.get_type())).collect::<Option<Vec<_>>>())
    else {
        return [x; N];
    };
    let index_value = index.as_basic_value();
    let (BasicValueEnum::VectorValue(vector), BasicValueEnum::IntValue(lane)) = (x.raw, index_value) else {
        return [x; N];
    };
    let argument = x.or_self(builder.build_extract_element(vector, lane, ""));
    let results: [Lanes<'e, 'ctx>; N] = emitter.unpack(function, argument);
    let next: Vec<BasicValueEnum<'ctx>> = sums
        .iter()
        .zip(results)
        .filter_map(|(sum, result)| match sum.as_basic_value() {
            BasicValueEnum::VectorValue(sum) => emitter.record(builder.build_insert_element(sum, result.raw, lane, "")),
            _ => None,
        })
        .map(Into::into)
        .collect();
    let after = emitter.lanes(index_value) + 1;
    let more = after.ult(i64::from(x.width()));
    if let BasicValueEnum::IntValue(more) = more.raw {
        emitter.record(builder.build_conditional_branch(more, body, done));
    }
    index.add_incoming(&[(&int.const_zero(), from), (&after.raw, body)]);
    for (sum, next) in sums.iter().zip(&next) {
        sum.add_incoming(&[(&x.raw.get_type().const_zero(), from), (next, body)]);
    }
    builder.position_at_end(done);
    std::array::from_fn(|i| next.get(i).map_or(x, |&raw| Lanes { raw, ..x }))
}

impl<'ctx> Emitter<'ctx> {
    /// Emits a loop: `state` becomes `body(state)` while any lane of `condition(state)` is set. All lanes iterate
    /// together, so the body must not change lanes whose own condition is false, or must be harmless for them.
    pub fn repeat_while<'e, const N: usize>(
        &'e self,
        state: [Lanes<'e, 'ctx>; N],
        condition: impl FnOnce([Lanes<'e, 'ctx>; N]) -> Lanes<'e, 'ctx>,
        body: impl FnOnce([Lanes<'e, 'ctx>; N]) -> [Lanes<'e, 'ctx>; N],
    ) -> [Lanes<'e, 'ctx>; N] {
        let (Some(from), Some(head), Some(again), Some(done)) =
            (self.builder.get_insert_block(), self.block("while"), self.block("do"), self.block("done"))
        else {
            return state;
        };
        self.record(self.builder.build_unconditional_branch(head));
        self.builder.position_at_end(head);
        let phis = state.map(|lanes| self.record(self.builder.build_phi(lanes.raw.get_type(), "")));
        let current: [Lanes<'e, 'ctx>; N] =
            std::array::from_fn(|i| phis[i].map_or(state[i], |phi| Lanes { raw: phi.as_basic_value(), ..state[i] }));
        let go_on = condition(current).any();
        let BasicValueEnum::IntValue(bit) = go_on.raw else {
            go_on.misuse("the condition of a loop is not a mask");
            return state;
        };
        self.record(self.builder.build_conditional_branch(bit, again, done));
        self.builder.position_at_end(again);
        let open = self.begin_loop();
        let next = body(current);
        let counters = self.end_loop(open, N);
        let next = next.map(|next| next.as_counter(counters));
        let back = self.builder.get_insert_block().unwrap_or(again);
        self.record(self.builder.build_unconditional_branch(head));
        for ((phi, first), next) in phis.iter().zip(state).zip(next) {
            if let Some(phi) = phi {
                phi.add_incoming(&[(&first.raw, from), (&next.raw, back)]);
            }
        }
        self.builder.position_at_end(done);
        current
    }

    /// Runs `body` for the numbers from `start` to before `end`, with a constant step.
    pub(crate) fn each<'e>(
        &'e self,
        [start, end]: [Lanes<'e, 'ctx>; 2],
        step: impl Operand<'e, 'ctx>,
        body: impl FnOnce(Lanes<'e, 'ctx>),
    ) {
        self.repeat_while(
            [start],
            |[at]| at.ult(end),
            |[at]| {
                body(at);
                [at + step]
            },
        );
    }

    /// Packs fields into the result of a function with several results.
    pub(crate) fn pack(&self, kind: StructType<'ctx>, fields: &[Lanes<'_, 'ctx>]) -> BasicValueEnum<'ctx> {
        let mut packed = kind.const_zero();
        for (i, field) in (0..).zip(fields) {
            let inserted = self.record(self.builder.build_insert_value(packed, field.raw, i, ""));
            match inserted.map(|value| value.as_any_value_enum()) {
                Some(AnyValueEnum::StructValue(value)) => packed = value,
                _ => self.fail(Error::internal("LLVM cannot pack the results of a function")),
            }
        }
        packed.into()
    }

    /// Calls a function with one argument and several results.
    fn unpack<'e, const N: usize>(
        &'e self,
        function: FunctionValue<'ctx>,
        argument: Lanes<'e, 'ctx>,
    ) -> [Lanes<'e, 'ctx>; N] {
        let raw: BasicMetadataValueEnum<'ctx> = argument.raw.into();
        let call = self.record(self.builder.build_call(function, &[raw], ""));
        let Some(ValueKind::Basic(BasicValueEnum::StructValue(results))) = call.map(|call| call.try_as_basic_value())
        else {
            return [argument; N];
        };
        std::array::from_fn(|i| {
            let field =
                u32::try_from(i).ok().and_then(|i| self.record(self.builder.build_extract_value(results, i, "")));
            field.map_or(argument, |raw| Lanes { raw, ..argument })
        })
    }
}
