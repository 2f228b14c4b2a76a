//! Values that regions take from around them.
//!
//! An argument of a loop that each iteration passes on as it came is no state: it is the value that the loop began
//! with, which its regions capture.

use std::collections::{HashMap, HashSet};

use super::call::stem;
use crate::ir::{BlockId, Module, OpId, RegionId, ValueId};

/// Regions in regions that are looked at; the lowering refuses deeper ones.
const MAX_DEPTH: usize = 110;

/// Values that loops capture, and arguments of loops that are other values.
#[derive(Default)]
pub(super) struct Captures {
    /// Arguments and results of loops that are the values they began with.
    replaced: HashMap<ValueId, ValueId>,
    /// Values that the regions of a loop take from around it.
    of_loops: HashMap<OpId, Vec<ValueId>>,
}

impl Captures {
    /// Looks at all loops of a program, inner ones first.
    pub fn new(module: &Module) -> Captures {
        let mut captures = Captures::default();
        for op in inner_first(module) {
            if stem(module, op).1 == "while" {
                captures.replace_invariants(module, op);
                let values = captures.of_regions(module, &module.operations[op].regions);
                captures.of_loops.insert(op, values);
            }
        }
        captures
    }

    /// Whether an argument or a result is the value that its loop began with.
    pub fn is_replaced(&self, value: ValueId) -> bool {
        self.replaced.contains_key(&value)
    }

    /// The value that this one is.
    pub fn resolve(&self, mut value: ValueId) -> ValueId {
        // There are no circles: only a value that is not replaced replaces another.
        while let Some(&other) = self.replaced.get(&value) {
            value = other;
        }
        value
    }

    /// Values that the regions of a loop take from around it, in the order of their first uses.
    pub fn of_loop(&self, op: OpId) -> Vec<ValueId> {
        let values = self.of_loops.get(&op).into_iter().flatten();
        // Loops around it were looked at later.
        let mut seen: HashSet<ValueId> = HashSet::new();
        values.map(|&value| self.resolve(value)).filter(|&value| seen.insert(value)).collect()
    }

    fn replace_invariants(&mut self, module: &Module, op: OpId) {
        let operation = &module.operations[op];
        let block = |region: Option<&RegionId>| module.regions[*region?].blocks.first().map(|&b| &module.blocks[b]);
        let regions = &operation.regions;
        let (Some(condition), Some(body)) = (block(regions.first()), block(regions.get(1))) else { return };
        let Some(&last) = body.operations.last() else { return };
        let (operands, returned) = (&operation.operands, &module.operations[last].operands);
        let counts = [condition.arguments.len(), body.arguments.len(), returned.len(), operation.results.len()];
        if counts.iter().any(|&count| count != operands.len()) {
            return;
        }
        let is_invariant = |&i: &usize| {
            let value = self.resolve(returned[i]);
            value == body.arguments[i] || value == self.resolve(operands[i])
        };
        let invariant: Vec<usize> = (0..operands.len()).filter(is_invariant).collect();
        // A loop has a state.
        if invariant.len() < operands.len() {
            for i in invariant {
                for value in [condition.arguments[i], body.arguments[i], operation.results[i]] {
                    let begun = self.resolve(operands[i]);
                    if begun != value {
                        self.replaced.entry(value).or_insert(begun);
                    }
                }
            }
        }
    }

    /// Values that are used in regions and defined outside of them, in the order of their first uses: those in the
    /// regions of an operation are before its operands.
    pub fn of_regions(&self, module: &Module, regions: &[RegionId]) -> Vec<ValueId> {
        let mut inside: HashSet<ValueId> = HashSet::new();
        let mut used: Vec<ValueId> = Vec::new();
        let mut steps: Vec<(OpId, bool)> = Vec::new();
        let mut enter = |steps: &mut Vec<(OpId, bool)>, regions: &[RegionId]| {
            let blocks: Vec<BlockId> =
                regions.iter().flat_map(|&region| module.regions[region].blocks.clone()).collect();
            for block in blocks.into_iter().rev().map(|block| &module.blocks[block]) {
                inside.extend(&block.arguments);
                inside.extend(block.operations.iter().flat_map(|&op| &module.operations[op].results));
                steps.extend(block.operations.iter().rev().map(|&op| (op, false)));
            }
        };
        enter(&mut steps, regions);
        while let Some((op, is_left)) = steps.pop() {
            let operation = &module.operations[op];
            let of_loop = self.of_loops.get(&op);
            if of_loop.is_none() && !is_left && !operation.regions.is_empty() {
                steps.push((op, true));
                enter(&mut steps, &operation.regions);
                continue;
            }
            let is_state = |(i, _): &(usize, &ValueId)| {
                of_loop.is_none() || operation.results.get(*i).is_none_or(|result| !self.is_replaced(*result))
            };
            used.extend(operation.operands.iter().enumerate().filter(is_state).map(|(_, &value)| value));
            used.extend(of_loop.into_iter().flatten());
        }
        let mut seen: HashSet<ValueId> = HashSet::new();
        let outer = used.into_iter().map(|value| self.resolve(value)).filter(|value| !inside.contains(value));
        outer.filter(|&value| seen.insert(value)).collect()
    }
}

/// Operations in the order of the text, but those in regions before the one that has the regions. Regions that the
/// lowering refuses for their depth are left out.
fn inner_first(module: &Module) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut next: Vec<(OpId, usize)> = module.top.into_iter().map(|top| (top, 0)).collect();
    while let Some((op, depth)) = next.pop() {
        found.push(op);
        let regions = module.operations[op].regions.iter().filter(|_| depth <= MAX_DEPTH);
        let blocks = regions.flat_map(|&region| &module.regions[region].blocks);
        next.extend(blocks.flat_map(|&block| &module.blocks[block].operations).map(|&op| (op, depth + 1)));
    }
    found.reverse();
    found
}
