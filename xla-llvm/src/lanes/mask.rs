//! Masks that are known when the code is emitted, and masks that LLVM must not know.

use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{BasicValueEnum, ValueKind};

use super::{Lanes, Scalar};

/// Runs of lanes up to which a plain access for each is better than a masked one for all.
const MOST_RUNS: usize = 2;

/// Bits of a general-purpose register.
const WORD: u32 = 64;

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Of a constant mask, the runs of lanes that are set: the first lane of each and how many. `None` of a mask that
    /// is known only when the code runs, and of one of many runs.
    pub(super) fn constant_runs(self) -> Option<Vec<(u32, u32)>> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for number in 0..self.width() {
            if !self.constant_lane(number)? {
                continue;
            }
            let known = runs.len();
            match runs.last_mut() {
                Some((first, count)) if *first + *count == number => *count += 1,
                _ if known == MOST_RUNS => return None,
                _ => runs.push((number, 1)),
            }
        }
        Some(runs)
    }

    /// Whether a mask is known to have all lanes set.
    pub(crate) fn is_always(self) -> bool {
        self.constant_runs().is_some_and(|runs| runs == [(0, self.width())])
    }

    /// Whether a lane of a mask is set, where that is constant.
    fn constant_lane(self, number: u32) -> Option<bool> {
        let bit = match self.raw {
            BasicValueEnum::VectorValue(vector) if vector.is_const() => self.lane(number).raw,
            BasicValueEnum::VectorValue(_) => return None,
            scalar => scalar,
        };
        match bit {
            BasicValueEnum::IntValue(bit) => bit.get_zero_extended_constant().map(|bit| bit != 0),
            _ => None,
        }
    }

    /// This, with the lanes from `first` on replaced by those of `run`, which may be one.
    pub(super) fn with_run(self, first: u32, run: Self) -> Self {
        let (width, count) = (self.width(), run.width());
        if count == width {
            return run;
        }
        if count == 1 {
            let BasicValueEnum::VectorValue(vector) = self.raw else { return run };
            let index = self.emitter.int_type(32).const_int(first.into(), false);
            let inserted = self.emitter.builder.build_insert_element(vector, run.raw, index, "");
            return self.or_self(inserted.map(Into::into));
        }
        let inside = |lane: u32| (first..first + count).contains(&lane);
        let wide = run.widened(width, first);
        let choose = |lane: u32| if inside(lane) { width + lane } else { lane };
        self.shuffle(wide, &Vec::from_iter((0..width).map(choose)))
    }

    /// The same mask, of which LLVM knows nothing: it goes through an empty piece of assembly in a general-purpose
    /// register. For targets with such registers of 64 bits.
    pub(super) fn opaque(self) -> Self {
        if self.width() > WORD {
            return self.in_parts(WORD, self, |part, _| part.opaque());
        }
        let bits = self.emitter.int_type(self.width());
        let packed = self.or_self(self.emitter.builder.build_bit_cast(self.raw, bits, ""));
        let hidden = packed.zext(WORD).through_assembly().trunc(self.width());
        let mask = self.emitter.lane_type(Scalar::Int(1), self.width());
        self.or_self(self.emitter.builder.build_bit_cast(hidden.raw, mask, ""))
    }

    /// Passes a 64-bit scalar through an empty piece of assembly.
    fn through_assembly(self) -> Self {
        let word = self.emitter.int_type(WORD);
        let ty = word.fn_type(&[BasicMetadataTypeEnum::from(word)], false);
        let context = self.emitter.context();
        let (code, constraints) = (String::new(), "=r,0".to_string());
        let assembly = context.create_inline_asm(ty, code, constraints, false, false, None, false);
        let call = self.emitter.builder.build_indirect_call(ty, assembly, &[self.raw.into()], "");
        match self.emitter.record(call).map(|call| call.try_as_basic_value()) {
            Some(ValueKind::Basic(raw)) => Lanes { raw, ..self },
            Some(ValueKind::Instruction(_)) | None => self,
        }
    }
}
