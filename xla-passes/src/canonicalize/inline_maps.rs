//! Map inlining: replaces a mapped elementwise function by elementwise operations on arrays.

use std::collections::HashMap;

use xla_hlo::entity::SecondaryMap;
use xla_hlo::ops::{Broadcast, CallContext, Family, Map};
use xla_hlo::{ArrayShape, CompId, Computation, Error, InstrId, Instruction, Module, Op, Result, Shape};

use crate::rewrite::graph;
use crate::rewrite::graph::clone_with_operands;
use crate::rewrite::growth::{self, Growth, MAX_INSTRUCTIONS};
use crate::{Pass, PassContext};

/// Replaces `map(f, xs...)` by `f` on whole arrays, if `f` consists only of elementwise operations and scalar
/// constants.
///
/// Other maps are unchanged. Functions that nest deeply move to their only call site, outermost first. Maps whose
/// inlined functions would make the module too large are an error. So are combiners and comparators of such a size,
/// since targets inline them into the loops that call them.
pub struct InlineMaps;

impl Pass for InlineMaps {
    fn name(&self) -> &'static str {
        "inline-maps"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let sizes = growth::expanded_sizes(module, |context| context == CallContext::Embedded);
        if module.ids().map(|id| sizes[id]).fold(0, usize::saturating_add) > MAX_INSTRUCTIONS {
            inline_mapped_once(module, cx)?;
        }
        let mut growth = Growth::of(module);
        for caller in module.post_order() {
            for (map, callee) in elementwise_maps(module, caller).into_iter().filter(|_| cx.allow_rewrite(self.name()))
            {
                let callee = module[callee].clone();
                if !growth.admits(callee.len()) {
                    return Err(too_large(module, caller, map, callee.name()));
                }
                inline(module, caller, map, &callee)?;
            }
        }
        check_embedded(module)
    }
}

/// Inlines functions with a single call site, callers first: each instruction is copied once for any nesting depth.
/// Innermost first, `n` nested functions would be `n²/2` copies of bodies.
fn inline_mapped_once(module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
    let mut sites = SecondaryMap::<CompId, usize>::new(0);
    let mut maps_elements = SecondaryMap::<CompId, bool>::new(false);
    let order = module.post_order();
    for &id in &order {
        module[id].iter().flat_map(|(_, i)| i.op().called_computations()).for_each(|callee| sites[callee] += 1);
        maps_elements[id] = module[id].iter().all(|(_, i)| match i.op() {
            Op::Map(map) => is_scalar(i) && graph::is_free(i) && maps_elements[map.computation],
            _ => is_elementwise_scalar(i),
        });
    }
    let mapped_once = |module: &Module, caller: CompId, id: InstrId| match module[caller][id].op() {
        Op::Map(map) if graph::is_free(&module[caller][id]) => {
            (sites[map.computation] == 1 && maps_elements[map.computation]).then_some((id, map.computation))
        }
        _ => None,
    };
    for caller in order.into_iter().rev() {
        if module.get(caller).is_none() {
            continue;
        }
        let mut waiting: Vec<_> = module[caller].ids().filter_map(|id| mapped_once(module, caller, id)).collect();
        while let Some((map, callee)) = waiting.pop() {
            if !cx.allow_rewrite(InlineMaps.name()) {
                continue;
            }
            let existing = module[caller].ids().next_back();
            let body = module[callee].clone();
            inline(module, caller, map, &body)?;
            module.remove(callee)?;
            let new = module[caller].ids().rev().take_while(|id| Some(*id) > existing);
            waiting.extend(new.filter_map(|id| mapped_once(module, caller, id)).collect::<Vec<_>>());
        }
    }
    Ok(())
}

/// Replaces a map by its function, applied to arrays.
fn inline(module: &mut Module, caller: CompId, map: InstrId, callee: &Computation) -> Result<()> {
    let computation = module.computation_mut(caller);
    let result = on_arrays(computation, map, callee);
    computation.replace_all_uses(map, result);
    computation.remove(map)?;
    Ok(())
}

/// Returns an error if an embedded computation, including its callees, is too large.
fn check_embedded(module: &Module) -> Result<()> {
    let sizes = growth::expanded_sizes(module, |context| context != CallContext::None);
    for caller in module.ids() {
        for (id, instruction) in module[caller].iter() {
            let is_embedded = instruction.op().call_context() == CallContext::Embedded;
            let callees = instruction.op().called_computations();
            if let Some(&large) = callees.iter().find(|&&c| is_embedded && sizes[c] > MAX_INSTRUCTIONS) {
                return Err(too_large(module, caller, id, module[large].name()));
            }
        }
    }
    Ok(())
}

fn too_large(module: &Module, caller: CompId, id: InstrId, callee: &str) -> Error {
    let (name, caller) = (module[caller][id].name(), module[caller].name());
    growth::exceeded(&format!("inlining {callee} into {name} of {caller}"))
}

fn elementwise_maps(module: &Module, caller: CompId) -> Vec<(InstrId, CompId)> {
    module[caller]
        .iter()
        .filter_map(|(id, instruction)| match instruction.op() {
            Op::Map(map) if graph::is_free(instruction) && is_elementwise(&module[map.computation]) => {
                Some((id, map.computation))
            }
            _ => None,
        })
        .collect()
}

fn is_elementwise(computation: &Computation) -> bool {
    computation.iter().all(|(_, instruction)| is_elementwise_scalar(instruction))
}

fn is_elementwise_scalar(instruction: &Instruction) -> bool {
    let is_known = matches!(instruction.op(), Op::Parameter(_) | Op::Constant(_))
        || instruction.opcode().family() == Family::Elementwise;
    is_known && is_scalar(instruction)
}

fn is_scalar(instruction: &Instruction) -> bool {
    instruction.shape().as_array().is_some_and(ArrayShape::is_scalar)
}

fn on_arrays(target: &mut Computation, map: InstrId, callee: &Computation) -> InstrId {
    let arguments = target[map].operands().to_vec();
    let dims = target[map].shape().as_array().map(|a| a.dims().to_vec()).unwrap_or_default();
    let mut new = HashMap::with_capacity(callee.len());
    for id in callee.post_order() {
        let instruction = &callee[id];
        let shape = instruction.shape().element_type().map(|ty| Shape::array(ty, dims.clone()));
        let shape = shape.unwrap_or_else(|| instruction.shape().clone()).with_default_layouts();
        let value = match instruction.op() {
            Op::Parameter(p) => arguments[p.number],
            Op::Constant(_) => {
                let scalar = target.add(clone_with_operands(instruction, Vec::new()));
                // A broadcast would keep a function on scalars from being inlined into its own callers.
                match dims.is_empty() {
                    true => scalar,
                    false => target.add(Instruction::new(Broadcast { dimensions: Vec::new() }.into(), shape, [scalar])),
                }
            }
            op => {
                let operands: Vec<InstrId> = instruction.operands().iter().map(|o| new[o]).collect();
                let op = match op {
                    Op::Map(map) => Map { dimensions: (0..dims.len()).collect(), computation: map.computation }.into(),
                    op => op.clone(),
                };
                target.add(Instruction::new(op, shape, operands).with_name(instruction.name()))
            }
        };
        new.insert(id, value);
    }
    new[&callee.root()]
}
