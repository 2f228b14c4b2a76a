//! Values that regions capture from enclosing regions.
//!
//! A loop argument that every iteration passes on unchanged is loop-invariant. It is not part of the loop state; the
//! regions capture the initial value instead.

use std::collections::{HashMap, HashSet};

use super::call::stem;
use crate::ir::{BlockId, Module, OpId, RegionId, ValueId};

/// Limit on the nesting of regions in this analysis. The lowering rejects deeper ones.
const MAX_DEPTH: usize = 110;

/// Captures of loops, and the loop-invariant arguments that are replaced by their initial values.
#[derive(Default)]
pub(super) struct Captures {
    /// Loop-invariant arguments and results of loops, with the values that replace them.
    replaced: HashMap<ValueId, ValueId>,
    /// Values that the regions of each loop capture.
    of_loops: HashMap<OpId, Vec<ValueId>>,
}

impl Captures {
    /// Analyzes all loops of a program, inner ones first.
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

    /// Whether an argument or result of a loop is replaced by the loop's initial value.
    pub fn is_replaced(&self, value: ValueId) -> bool {
        self.replaced.contains_key(&value)
    }

    /// Returns the value that replaces `value`, or `value` itself.
    pub fn resolve(&self, mut value: ValueId) -> ValueId {
        // There are no cycles, because a value is only ever replaced by one that is not replaced.
        while let Some(&other) = self.replaced.get(&value) {
            value = other;
        }
        value
    }

    /// Returns the values that the regions of a loop capture, in the order of their first uses.
    pub fn of_loop(&self, op: OpId) -> Vec<ValueId> {
        let values = self.of_loops.get(&op).into_iter().flatten();
        // Enclosing loops are analyzed later and may have replaced some of these values.
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
        // A loop keeps at least one value in its state.
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

    /// Returns the values that are used in regions and defined outside of them, in the order of their first uses. Uses
    /// in the regions of an operation count before its operands.
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

/// Returns the operations in textual order, except that nested operations precede the one that contains them. Regions
/// beyond the depth that the lowering accepts are omitted.
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
