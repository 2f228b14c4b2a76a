//! Trip counts: how often a counting loop runs, where that can be told.

use xla_hlo::ops::{Binary, BinaryOp, CompareDirection};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Module, Op, Result};

use crate::{Pass, PassContext};

/// Writes `{"known_trip_count":{"n":"12"}}` into the backend configuration of loops that count, where that is empty.
///
/// A note for backends, not an edit of the program: the pass never reports a change.
pub struct AnnotateTripCounts;

impl Pass for AnnotateTripCounts {
    fn name(&self) -> &'static str {
        "annotate-trip-counts"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            let counts: Vec<(InstrId, u64)> =
                module[id].ids().filter_map(|i| Some((i, trip_count(module, id, i)?))).collect();
            for (instruction, n) in counts {
                let config = &mut module.computation_mut(id).annotations_mut(instruction).backend_config;
                if config.is_empty() {
                    *config = format!("{{\"known_trip_count\":{{\"n\":\"{n}\"}}}}");
                }
            }
        }
        Ok(())
    }
}

/// How often the body of a loop runs, if the loop counts an element of its state from a constant in constant steps up (or
/// down) to a constant.
pub fn trip_count(module: &Module, caller: CompId, id: InstrId) -> Option<u64> {
    let Op::While(op) = module[caller][id].op() else { return None };
    let (condition, body) = (&module[op.condition], &module[op.body]);
    let (index, direction, limit) = bound(condition)?;
    let root = &body[body.root()];
    let next = matches!(root.op(), Op::Tuple(_)).then(|| root.operands().get(index).copied())??;
    let step = step(body, next, index)?;
    let init = module[caller][id].operand(0);
    let begin = match module[caller][init].op() {
        Op::Tuple(_) => integer(&module[caller], module[caller][init].operand(index))?,
        _ => return None,
    };
    let ty = body[next].shape().element_type()?;
    rounds(begin, step, limit, direction, ty)
}

/// The element that the condition compares, how, and with what.
fn bound(condition: &Computation) -> Option<(usize, CompareDirection, i128)> {
    use CompareDirection::*;
    let root = &condition[condition.root()];
    let Op::Compare(compare) = root.op() else { return None };
    let (a, b) = (root.operand(0), root.operand(1));
    if let (Some(index), Some(limit)) = (element(condition, a), integer(condition, b)) {
        return Some((index, compare.direction, limit));
    }
    let swapped = match compare.direction {
        Lt => Gt,
        Gt => Lt,
        Le => Ge,
        Ge => Le,
        Eq => Eq,
        Ne => Ne,
    };
    Some((element(condition, b)?, swapped, integer(condition, a)?))
}

fn step(body: &Computation, next: InstrId, index: usize) -> Option<i128> {
    let Op::Binary(Binary { op }) = body[next].op() else { return None };
    let (a, b) = (body[next].operand(0), body[next].operand(1));
    match op {
        BinaryOp::Add if element(body, a) == Some(index) => integer(body, b),
        BinaryOp::Add if element(body, b) == Some(index) => integer(body, a),
        BinaryOp::Subtract if element(body, a) == Some(index) => integer(body, b).map(|s| -s),
        _ => None,
    }
}

/// The index of the element of the parameter that `id` is.
fn element(computation: &Computation, id: InstrId) -> Option<usize> {
    match computation[id].op() {
        Op::GetTupleElement(e) if computation.parameters().first() == Some(&computation[id].operand(0)) => {
            Some(e.index)
        }
        _ => None,
    }
}

fn integer(computation: &Computation, id: InstrId) -> Option<i128> {
    match computation[id].op() {
        Op::Constant(constant) if computation[id].shape().as_array()?.is_scalar() => constant.literal.get(0).as_i128(),
        _ => None,
    }
}

/// How often `i = begin; while i <direction> limit { i += step }` runs, if `i` stays in range of its type.
fn rounds(begin: i128, step: i128, limit: i128, direction: CompareDirection, ty: ElementType) -> Option<u64> {
    let (last, toward) = match direction {
        CompareDirection::Lt => (limit - 1, 1),
        CompareDirection::Le => (limit, 1),
        CompareDirection::Gt => (limit + 1, -1),
        CompareDirection::Ge => (limit, -1),
        CompareDirection::Eq | CompareDirection::Ne => return None,
    };
    if step.signum() != toward || !ty.is_integer() {
        return None;
    }
    let n = if (last - begin) * toward < 0 { 0 } else { (last - begin) / step + 1 };
    let bits = ty.bit_width() as u32;
    let (least, greatest) = match ty.is_signed() {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    let end = begin.checked_add(n.checked_mul(step)?)?;
    (least..=greatest).contains(&end).then(|| u64::try_from(n).ok())?
}
