//! Tuple simplification: elements of a `tuple` instruction, and tuples that only rebuild another tuple.

use xla_hlo::{CompId, Computation, InstrId, Module, Op, Result};

use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Replaces `get-tuple-element(tuple(..., x, ...))` by `x`, and a `tuple` of all elements of a tuple, in order, by that
/// tuple.
pub struct SimplifyTuples;

impl Pass for SimplifyTuples {
    fn name(&self) -> &'static str {
        "simplify-tuples"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            simplify(module.computation_mut(id), cx)?;
        }
        Ok(())
    }
}

fn simplify(computation: &mut Computation, cx: &PassContext<'_>) -> Result<()> {
    let tuples: Vec<InstrId> = computation
        .post_order()
        .into_iter()
        .filter(|&id| matches!(computation[id].op(), Op::Tuple(_) | Op::GetTupleElement(_)))
        .collect();
    for id in tuples {
        let Some(same) = same_value(computation, id) else { continue };
        if !graph::is_free(&computation[id]) || !cx.allow_rewrite(SimplifyTuples.name()) {
            continue;
        }
        computation.replace_all_uses(id, same);
        graph::remove_dead(computation, id)?;
    }
    Ok(())
}

/// Returns an existing instruction with the same value as a tuple or an element of one.
fn same_value(computation: &Computation, id: InstrId) -> Option<InstrId> {
    let instruction = computation.get(id)?;
    match instruction.op() {
        Op::GetTupleElement(element) => {
            let tuple = &computation[instruction.operand(0)];
            matches!(tuple.op(), Op::Tuple(_)).then(|| tuple.operand(element.index))
        }
        Op::Tuple(_) => whole_tuple(computation, id),
        _ => None,
    }
}

fn whole_tuple(computation: &Computation, id: InstrId) -> Option<InstrId> {
    let source = |position: usize, element: InstrId| match computation[element].op() {
        Op::GetTupleElement(e) if e.index == position => Some(computation[element].operand(0)),
        _ => None,
    };
    let operands = computation[id].operands();
    let tuple = source(0, *operands.first()?)?;
    let all = operands.iter().enumerate().all(|(i, &e)| source(i, e) == Some(tuple));
    (all && graph::same_shape(computation[tuple].shape(), computation[id].shape())).then_some(tuple)
}
