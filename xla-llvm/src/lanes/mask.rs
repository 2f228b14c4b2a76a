//! Masks that are constant at compile time, and masks that must be opaque to LLVM.

use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{BasicValueEnum, ValueKind};

use super::{Lanes, Scalar};

/// Maximum number of runs of set lanes for which one unmasked access per run is better than a masked access.
const MOST_RUNS: usize = 2;

/// Bits of a general-purpose register.
const WORD: u32 = 64;

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Returns the runs of set lanes in a constant mask, as first lane and length. `None` if the mask is not constant,
    /// or has too many runs.
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

    /// Whether all lanes of a mask are known to be set.
    pub(crate) fn is_always(self) -> bool {
        self.constant_runs().is_some_and(|runs| runs == [(0, self.width())])
    }

    /// Returns whether a lane of a mask is set, if it is constant.
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

    /// Replaces the lanes from `first` on by those of `run`, which may have a single lane.
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

    /// Hides a mask from LLVM's optimizer by passing it through empty inline assembly in a general-purpose register.
    /// The target must have 64-bit general-purpose registers.
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

    /// Passes a 64-bit scalar through empty inline assembly.
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
