//! Loops that a backend compiles to one kernel: their steps, and the thunks that launch them.

use std::collections::HashSet;

use xla_hlo::ops::While;
use xla_hlo::{ArrayShape, CompId, ElementType, Op, Result};
use xla_passes::buffers::Slice;

use super::build::{SequenceBuilder, does_nothing};
use super::{ArraySlice, LoopContext, LoopRounds, LoopStep, Thunk, ThunkKind, ThunkSequence};

/// Maximum number of iterations of a loop in one launch. A launch cannot be cancelled; this limit keeps its duration
/// below about a second even if iterations are slow.
const MOST_ROUNDS: u64 = 1 << 14;

impl SequenceBuilder<'_> {
    /// Compiles a loop to one kernel if the backend supports it. Returns the launch itself or, if the trip count is
    /// unknown or large, a loop whose condition is a launch of many iterations and whose body is empty. `thunk` is the
    /// loop's thunk, with its arrays assigned.
    pub fn whole_loop(
        &mut self,
        thunk: &Thunk,
        op: &While,
        (predicate, trip_count): (Slice, Option<u64>),
    ) -> Result<Option<Thunk>> {
        let rounds = match trip_count {
            Some(count) if count <= MOST_ROUNDS => LoopRounds::Counted(count),
            Some(_) | None => LoopRounds::Tested { at_most: MOST_ROUNDS },
        };
        // The steps' thunks are only needed to find their arrays, so their numbers are released again.
        let next = self.next;
        let condition = match rounds {
            LoopRounds::Counted(_) => Some(Vec::new()),
            LoopRounds::Tested { .. } => self.steps(op.condition)?,
        };
        let steps = condition.zip(self.steps(op.body)?);
        self.next = next;
        let Some((condition, body)) = steps else { return Ok(None) };
        let all = || condition.iter().chain(&body);
        let mut operands = distinct(all().flat_map(|step| &step.operands));
        let results = distinct(all().flat_map(|step| &step.results));
        if let LoopRounds::Tested { .. } = rounds
            && !operands.iter().any(|array| array.slice == predicate)
        {
            operands.push(ArraySlice { slice: predicate, shape: ArrayShape::new(ElementType::Pred, []) });
        }
        let kernel = self.lowering.lower_loop(&LoopContext {
            module: self.module,
            computation: thunk.computation,
            instruction: thunk.instruction,
            condition: &condition,
            body: &body,
            predicate,
            rounds,
            operands: &operands,
            results: &results,
        })?;
        let Some(kernel) = kernel else { return Ok(None) };
        let kind = ThunkKind::Kernel(kernel);
        if let LoopRounds::Counted(_) = rounds {
            return Ok(Some(Thunk { kind, operands, results, ..thunk.clone() }));
        }
        let launch = Thunk { kind, operands, results, ..self.thunk(thunk.computation, thunk.instruction)? };
        let condition = ThunkSequence { thunks: vec![launch], ..ThunkSequence::default() };
        let kind = ThunkKind::While { condition, body: ThunkSequence::default(), predicate, trip_count: None };
        Ok(Some(Thunk { kind, ..thunk.clone() }))
    }

    /// Returns the steps of a computation, in order; `None` if it contains more than computations and copies.
    fn steps(&mut self, computation: CompId) -> Result<Option<Vec<LoopStep>>> {
        let module = self.module;
        let mut steps = Vec::new();
        for id in module[computation].sequence() {
            let op = module[computation][id].op();
            match op {
                op if does_nothing(op) => continue,
                Op::Transfer(_) | Op::Collective(_) | Op::While(_) | Op::Conditional(_) | Op::CustomCall(_) => {
                    return Ok(None);
                }
                Op::Call(call) => match self.steps(call.computation)? {
                    Some(called) => {
                        steps.extend(called);
                        continue;
                    }
                    None => return Ok(None),
                },
                _ => {}
            }
            let thunk = self.thunk(computation, id)?;
            let copy = match op {
                Op::Bitcast(_) | Op::Reshape(_) | Op::Copy(_) => self.byte_copy(&thunk, op),
                _ => None,
            };
            if thunk.has_effects {
                return Ok(None);
            }
            if copy.as_ref().is_none_or(|copy| copy.is_needed) {
                let Thunk { instruction, operands, results, .. } = thunk;
                steps.push(LoopStep { computation, instruction, operands, results, copies: copy.is_some() });
            }
        }
        Ok(Some(steps))
    }
}

/// Returns the arrays without duplicate slices.
fn distinct<'a>(arrays: impl Iterator<Item = &'a ArraySlice>) -> Vec<ArraySlice> {
    let mut seen = HashSet::new();
    arrays.filter(|array| seen.insert(array.slice)).cloned().collect()
}
