//! Shrinker: makes a failing program smaller while it still fails.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use xla_hlo::eval::evaluate;
use xla_hlo::ops::Op;
use xla_hlo::{CompId, InstrId, Literal, Module, Scalar};

use crate::program::{Program, Replacement};

/// Time limit of shrinking.
const LONGEST: Duration = Duration::from_secs(60);

/// Returns the smallest program found for which `fails` returns true.
pub fn shrink(program: &Program, fails: &dyn Fn(&Program) -> bool) -> Program {
    let mut shrinker = Shrinker { best: program.clone(), fails, end: Instant::now() + LONGEST };
    shrinker.first_outputs();
    while shrinker.round() {}
    shrinker.best
}

struct Shrinker<'f> {
    best: Program,
    fails: &'f dyn Fn(&Program) -> bool,
    end: Instant,
}

impl Shrinker<'_> {
    /// Keeps a smaller candidate if it still fails.
    fn accept(&mut self, candidate: Option<Program>) -> bool {
        let Some(candidate) = candidate else { return false };
        let fails = Instant::now() < self.end && (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Reduces the program to a single output, if one of them fails alone.
    fn first_outputs(&mut self) {
        for id in self.best.outputs.clone() {
            if self.accept(self.best.rebuilt(&[id], &HashMap::new())) {
                return;
            }
        }
    }

    /// Tries each step once; returns whether any step succeeded.
    fn round(&mut self) -> bool {
        let steps =
            [Self::fewer_outputs, Self::earlier_output, Self::cut, Self::bypass, Self::callees, Self::arguments];
        let mut helped = false;
        for step in steps {
            helped |= step(self);
        }
        helped && Instant::now() < self.end
    }

    fn fewer_outputs(&mut self) -> bool {
        let outputs = self.best.outputs.clone();
        if outputs.len() < 2 {
            return false;
        }
        (0..outputs.len()).any(|i| {
            let mut fewer = outputs.clone();
            fewer.remove(i);
            self.accept(self.best.rebuilt(&fewer, &HashMap::new()))
        })
    }

    /// Replaces the only output by one of its operands.
    fn earlier_output(&mut self) -> bool {
        let [output] = self.best.outputs[..] else { return false };
        let operands = self.best.module.entry()[output].operands().to_vec();
        operands.into_iter().any(|operand| {
            self.best.known.contains_key(&operand) && self.accept(self.best.rebuilt(&[operand], &HashMap::new()))
        })
    }

    /// Replaces instructions by parameters with the values that the evaluator computes.
    fn cut(&mut self) -> bool {
        let mut helped = false;
        while let Some((ids, values)) = self.values() {
            let cuts = ids.into_iter().zip(values);
            let found = cuts.into_iter().any(|(id, value)| {
                let replaced = HashMap::from([(id, Replacement::Parameter(value))]);
                self.accept(self.best.rebuilt(&self.best.outputs, &replaced))
            });
            if !found {
                break;
            }
            helped = true;
        }
        helped
    }

    /// Returns arrays of the entry that are neither parameters nor results, with their values; late ones first.
    fn values(&self) -> Option<(Vec<InstrId>, Vec<Literal>)> {
        let entry = self.best.module.entry();
        let is_inner = |id: &InstrId| {
            let instruction = &entry[*id];
            let is_array = instruction.shape().as_array().is_some();
            is_array && !matches!(instruction.op(), Op::Parameter(_)) && !self.best.outputs.contains(id)
        };
        let ids: Vec<InstrId> = entry.post_order().into_iter().rev().filter(is_inner).collect();
        if ids.is_empty() || Instant::now() >= self.end {
            return None;
        }
        let all = self.best.rebuilt(&ids, &HashMap::new())?;
        let values = evaluate(&all.module, all.arguments).ok()?.into_elements();
        (values.len() == ids.len()).then_some((ids, values))
    }

    /// Replaces instructions by operands of the same shape.
    fn bypass(&mut self) -> bool {
        let entry = self.best.module.entry();
        let mut pairs = Vec::new();
        for (id, instruction) in entry.iter() {
            let same = instruction.operands().iter().filter(|&&o| entry[o].shape().compatible(instruction.shape()));
            pairs.extend(same.map(|&o| (id, o)));
        }
        pairs.into_iter().rev().any(|(id, operand)| {
            let replaced = HashMap::from([(id, Replacement::Other(operand))]);
            self.accept(self.best.rebuilt(&self.best.outputs, &replaced))
        })
    }

    /// Replaces instructions of called computations by earlier ones of the same shape. Reduction functions are skipped:
    /// with another function the result of a reduction may depend on the order, and then every result is right.
    fn callees(&mut self) -> bool {
        let entry = self.best.module.entry_id();
        let reducing = reducing(&self.best.module);
        let callees: Vec<CompId> =
            self.best.module.ids().filter(|&id| id != entry && !reducing.contains(&id)).collect();
        callees.into_iter().any(|callee| self.callee(callee))
    }

    fn callee(&mut self, callee: CompId) -> bool {
        let Some(computation) = self.best.module.get(callee) else { return false };
        let order = computation.post_order();
        let mut pairs = Vec::new();
        for (i, &late) in order.iter().enumerate().rev() {
            let live = !computation[late].users().is_empty() || computation.root() == late;
            let same = |early: &&InstrId| computation[**early].shape().compatible(computation[late].shape());
            if live && !matches!(computation[late].op(), Op::Parameter(_)) {
                pairs.extend(order[..i].iter().filter(same).take(3).map(|&early| (late, early)));
            }
        }
        pairs.into_iter().any(|(late, early)| {
            let mut candidate = self.best.clone();
            let computation = candidate.module.computation_mut(callee);
            computation.replace_all_uses(late, early);
            let unused: Vec<InstrId> = computation.post_order().into_iter().rev().collect();
            for id in unused {
                if !matches!(computation[id].op(), Op::Parameter(_)) {
                    // Removal fails for the root and for instructions with users.
                    computation.remove(id).ok();
                }
            }
            self.accept(Some(candidate))
        })
    }

    /// Simplifies arguments: all zero, all one, one element and zeros.
    fn arguments(&mut self) -> bool {
        (0..self.best.arguments.len()).any(|i| {
            let argument = self.best.arguments[i].clone();
            simpler(&argument).into_iter().any(|simple| {
                let mut candidate = self.best.clone();
                candidate.arguments[i] = simple;
                candidate.widen_tolerances();
                self.accept(Some(candidate))
            })
        })
    }
}

/// Returns the computations that reduce many elements to one; their order of application is unspecified.
fn reducing(module: &Module) -> HashSet<CompId> {
    let reductions =
        |op: &Op| matches!(op, Op::Reduce(_) | Op::ReduceWindow(_) | Op::SelectAndScatter(_) | Op::Scatter(_));
    let instructions = module.iter().flat_map(|(_, computation)| computation.iter());
    let calls = instructions.filter(|(_, instruction)| reductions(instruction.op()));
    calls.flat_map(|(_, instruction)| instruction.op().called_computations()).collect()
}

/// Returns simpler arrays than an argument.
fn simpler(argument: &Literal) -> Vec<Literal> {
    let shape = argument.array_shape();
    let ty = shape.element_type();
    let splats: Vec<Literal> =
        [0, 1].into_iter().filter_map(|v| Literal::splat(shape, Scalar::from_i64(ty, v).rounded(ty)).ok()).collect();
    match splats.iter().position(|splat| splat == argument) {
        Some(at) => splats.into_iter().take(at).collect(),
        None => splats,
    }
}
