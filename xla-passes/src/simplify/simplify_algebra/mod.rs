//! Algebraic simplification: small rewrite rules, applied to a fixpoint.
//!
//! A rule is a function that inspects one instruction and proposes another value for it; see `README.md` in this
//! folder. The driver in this module keeps a worklist of instructions, applies proposals, counts them by rule name, and
//! stops at the limit that [`PassOptions`](crate::PassOptions) sets.

mod arithmetic;
mod broadcast;
mod convert;
mod convert_moves;
mod convolution;
pub(crate) mod dims;
mod dot;
mod draft;
mod gather;
mod logic;
mod reduce;
mod reshape;
mod slice;
mod slice_of;
mod transpose;

pub(crate) use convert::keeps_every_value;

use std::collections::VecDeque;

use draft::{Draft, DraftValue, Proposed};
use xla_hlo::entity::SecondaryMap;
use xla_hlo::{Annotations, CompId, Computation, InstrId, Instruction, Module, Op, Result};

use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// A rule with its name.
struct Rule {
    name: &'static str,
    apply: fn(&mut Draft<'_>, InstrId) -> Option<DraftValue>,
}

/// Declares a list of rules from the functions that implement them. Reports show the names with dashes.
macro_rules! rules {
    ($($name:ident),* $(,)?) => {
        &[$($crate::simplify::simplify_algebra::Rule { name: stringify!($name), apply: $name },)*]
    };
}
use rules;

/// Applies algebraic rules to every instruction until none matches.
///
/// Values stay bit-identical, except that a NaN may become a different NaN and where the documentation of a rule states
/// a difference in rounding.
pub struct SimplifyAlgebra;

impl Pass for SimplifyAlgebra {
    fn name(&self) -> &'static str {
        "simplify-algebra"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            Driver::new(module, id, cx).run()?;
        }
        Ok(())
    }
}

/// Returns the rules for an operation in the order of their application.
fn rules_for(op: &Op) -> [&'static [Rule]; 3] {
    let none: &[Rule] = &[];
    match op {
        Op::Unary(_) => [logic::UNARY, broadcast::ELEMENTWISE, reshape::ELEMENTWISE],
        Op::Binary(_) => [arithmetic::BINARY, broadcast::ELEMENTWISE, reshape::ELEMENTWISE],
        Op::Compare(_) => [logic::COMPARE, broadcast::ELEMENTWISE, reshape::ELEMENTWISE],
        Op::Select(_) => [logic::SELECT, broadcast::ELEMENTWISE, reshape::ELEMENTWISE],
        Op::Clamp(_) | Op::ReducePrecision(_) => [none, broadcast::ELEMENTWISE, reshape::ELEMENTWISE],
        Op::Convert(_) => [convert::CONVERT, broadcast::ELEMENTWISE, reshape::ELEMENTWISE],
        Op::BitcastConvert(_) => [convert::BITCAST_CONVERT, none, none],
        Op::Copy(_) | Op::Bitcast(_) => [reshape::COPY, none, none],
        Op::Constant(_) => [broadcast::CONSTANT, none, none],
        Op::Broadcast(_) => [broadcast::BROADCAST, none, none],
        Op::Reshape(_) => [reshape::RESHAPE, none, none],
        Op::Transpose(_) => [transpose::TRANSPOSE, none, none],
        Op::Slice(_) => [slice::SLICE, slice_of::SLICE, none],
        Op::Pad(_) => [slice::PAD, none, none],
        Op::Concatenate(_) => [slice::CONCATENATE, none, none],
        Op::Reverse(_) => [slice::REVERSE, none, none],
        Op::DynamicSlice(_) => [slice::DYNAMIC_SLICE, slice_of::DYNAMIC_SLICE, none],
        Op::DynamicUpdateSlice(_) => [slice::DYNAMIC_UPDATE_SLICE, none, none],
        Op::Dot(_) => [dot::DOT, none, none],
        Op::Convolution(_) => [convolution::CONVOLUTION, none, none],
        Op::Reduce(_) => [reduce::REDUCE, none, none],
        Op::Gather(_) => [gather::GATHER, convert_moves::CUT, none],
        Op::Scatter(_) => [gather::SCATTER, none, none],
        _ => [none, none, none],
    }
}

/// Returns the names of all rules, grouped by theme. Tests use it to check that each rule has a case.
pub fn rule_names() -> Vec<&'static str> {
    let themes = [
        reshape::RESHAPE,
        reshape::COPY,
        reshape::ELEMENTWISE,
        broadcast::BROADCAST,
        broadcast::ELEMENTWISE,
        broadcast::CONSTANT,
        transpose::TRANSPOSE,
        slice::SLICE,
        slice_of::SLICE,
        slice_of::DYNAMIC_SLICE,
        slice::PAD,
        slice::CONCATENATE,
        slice::REVERSE,
        slice::DYNAMIC_SLICE,
        slice::DYNAMIC_UPDATE_SLICE,
        arithmetic::BINARY,
        logic::UNARY,
        logic::COMPARE,
        logic::SELECT,
        convert::CONVERT,
        convert::BITCAST_CONVERT,
        convert_moves::CUT,
        dot::DOT,
        convolution::CONVOLUTION,
        reduce::REDUCE,
        gather::GATHER,
        gather::SCATTER,
    ];
    themes.into_iter().flatten().map(|rule| rule.name).collect()
}

struct Driver<'m, 'a> {
    module: &'m mut Module,
    id: CompId,
    cx: &'m PassContext<'a>,
    queue: VecDeque<InstrId>,
    queued: SecondaryMap<InstrId, bool>,
    /// Remaining rewrites before the driver stops without a fixpoint.
    budget: usize,
}

impl<'m, 'a> Driver<'m, 'a> {
    fn new(module: &'m mut Module, id: CompId, cx: &'m PassContext<'a>) -> Self {
        let queue: VecDeque<InstrId> = module[id].post_order().into();
        let mut queued = SecondaryMap::new(false);
        queue.iter().for_each(|&i| queued[i] = true);
        let budget = 64 * queue.len() + 1024;
        Driver { module, id, cx, queue, queued, budget }
    }

    fn run(mut self) -> Result<()> {
        while let Some(id) = self.queue.pop_front() {
            self.queued[id] = false;
            let Some(instruction) = self.module[self.id].get(id) else { continue };
            // Large tuples have many elements. Skips them before the checks below, which would visit the whole tuple
            // for each.
            let no_rules = rules_for(instruction.op()).iter().all(|rules| rules.is_empty());
            if no_rules || !graph::is_free(instruction) || !graph::is_static(&self.module[self.id], id) {
                continue;
            }
            let Some((rule, proposed, value)) = self.propose(id) else { continue };
            if self.budget == 0 || !self.cx.allow_rewrite(rule) {
                tracing::warn!(computation = self.module[self.id].name(), rule, "simplification stopped at its limit");
                break;
            }
            self.budget -= 1;
            tracing::trace!(rule, name = self.module[self.id][id].name(), "rewrite");
            self.apply(id, proposed, value)?;
        }
        Ok(())
    }

    fn propose(&self, id: InstrId) -> Option<(&'static str, Vec<Proposed>, DraftValue)> {
        for rule in rules_for(self.module[self.id][id].op()).into_iter().flatten() {
            let mut draft = Draft::new(self.module, self.id, self.cx.profile());
            if let Some(value) = (rule.apply)(&mut draft, id) {
                return Some((rule.name, draft.into_proposed(), value));
            }
        }
        None
    }

    fn apply(&mut self, old: InstrId, proposed: Vec<Proposed>, value: DraftValue) -> Result<()> {
        let computation = self.module.computation_mut(self.id);
        let annotations = computation[old].annotations().cloned().map(Box::new);
        let metadata =
            annotations.as_ref().map(|a| Box::new(Annotations { metadata: a.metadata.clone(), ..Default::default() }));
        let name = computation[old].name().to_string();
        let (opcode, operands) = (computation[old].opcode(), computation[old].operands().to_vec());
        let mut new: Vec<InstrId> = Vec::with_capacity(proposed.len());
        for p in proposed {
            let operands: Vec<InstrId> = p.operands.iter().map(|v| resolve(*v, &new)).collect();
            let shape = p.shape.with_default_layouts();
            let annotations = if value == DraftValue::New(new.len()) { &annotations } else { &metadata };
            new.push(computation.add(Instruction::new(p.op, shape, operands).with_annotations(annotations.clone())));
        }
        let value = resolve(value, &new);
        computation.replace_all_uses(old, value);
        graph::remove_dead(computation, old)?;
        remove_leftover(computation, old)?;
        // A replacement with the same opcode keeps the name, so that dumps can be compared.
        if new.contains(&value) && computation[value].opcode() == opcode {
            computation.rename(value, &name);
        }
        for id in new.into_iter().chain([value]).chain(operands) {
            self.push_with_users(id);
        }
        Ok(())
    }

    fn push_with_users(&mut self, id: InstrId) {
        let Some(instruction) = self.module[self.id].get(id) else { return };
        for next in [id].into_iter().chain(instruction.users().to_vec()) {
            if !std::mem::replace(&mut self.queued[next], true) {
                self.queue.push_back(next);
            }
        }
    }
}

fn resolve(value: DraftValue, new: &[InstrId]) -> InstrId {
    match value {
        DraftValue::Old(id) => id,
        DraftValue::New(i) => new[i],
    }
}

/// Removes the replaced instruction if it calls computations, since `remove_dead` keeps such instructions.
fn remove_leftover(computation: &mut Computation, old: InstrId) -> Result<()> {
    let Some(instruction) = computation.get(old) else { return Ok(()) };
    let operands = instruction.operands().to_vec();
    if instruction.users().is_empty() && computation.root() != old {
        computation.remove(old)?;
        for operand in operands {
            graph::remove_dead(computation, operand)?;
        }
    }
    Ok(())
}
