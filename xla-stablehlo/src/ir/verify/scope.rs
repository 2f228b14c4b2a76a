//! Verification of scopes: regions are one block that ends with a return, and values are defined before their uses and
//! visible there.

use xla_hlo::entity::EntityId;

use super::{Checked, Violation};
use crate::ir::{BlockId, Module, OpId, RegionId, ValueId};

/// Operations whose regions do not see values of enclosing regions.
const ISOLATED: [&[u8]; 4] = [b"builtin.module", b"func.func", b"vhlo.func_v1", b"sdy.manual_computation"];

/// Operations that terminate a region.
const RETURNS: [&[u8]; 4] = [b"vhlo.return_v1", b"stablehlo.return", b"func.return", b"sdy.return"];

/// Region that is being checked.
struct Level<'m> {
    region: RegionId,
    operations: std::slice::Iter<'m, OpId>,
    /// Operation that the region belongs to, and its remaining regions. Its results are defined after the last of them.
    op: OpId,
    regions: std::slice::Iter<'m, RegionId>,
    /// Depth of the outermost region whose values are visible.
    floor: u32,
}

struct Scopes<'m> {
    module: &'m Module,
    /// For each visible value, the depth of the region that defines it; 0 for all others.
    depths: Vec<u32>,
    stack: Vec<Level<'m>>,
}

pub(super) fn verify(module: &Module) -> Checked {
    let Some(top) = module.top else { return Ok(()) };
    let mut scopes = Scopes { module, depths: vec![0; module.values.len()], stack: Vec::new() };
    scopes.operation(top)?;
    while let Some(level) = scopes.stack.last_mut() {
        if let Some(&op) = level.operations.next() {
            scopes.operation(op)?;
        } else {
            scopes.end_region()?;
        }
    }
    Ok(())
}

impl<'m> Scopes<'m> {
    fn operation(&mut self, op: OpId) -> Checked {
        let operation = &self.module.operations[op];
        let floor = self.stack.last().map_or(0, |level| level.floor);
        for &operand in &operation.operands {
            let depth = self.depths[operand.index()];
            if depth == 0 || depth < floor {
                let what = if depth == 0 { "is not defined before this use" } else { "is not visible here" };
                return Err(Violation::new(op, format!("uses {operand}, which {what}")));
            }
        }
        match operation.regions.split_first().filter(|_| !self.module.is_declaration(op)) {
            None => self.define(&operation.results),
            Some((&first, rest)) => self.begin_region(op, first, rest.iter())?,
        }
        Ok(())
    }

    fn define(&mut self, values: &[ValueId]) {
        for value in values {
            self.depths[value.index()] = self.stack.len() as u32;
        }
    }

    fn begin_region(&mut self, op: OpId, region: RegionId, regions: std::slice::Iter<'m, RegionId>) -> Checked {
        let block = self.block(op, region)?;
        let is_isolated = ISOLATED.contains(&&*self.module.strings[self.module.operations[op].name]);
        let outer = self.stack.last().map_or(0, |level| level.floor);
        let floor = if is_isolated { self.stack.len() as u32 + 1 } else { outer };
        let block = &self.module.blocks[block];
        self.stack.push(Level { region, operations: block.operations.iter(), op, regions, floor });
        self.define(&block.arguments);
        Ok(())
    }

    /// Returns the only block of a region, after a check that it has exactly one return, at its end.
    fn block(&self, op: OpId, region: RegionId) -> Result<BlockId, Violation> {
        let [block] = self.module.regions[region].blocks[..] else {
            let count = self.module.regions[region].blocks.len();
            return Err(Violation::new(op, format!("has a region of {count} blocks, but StableHLO regions have one")));
        };
        let name = |op: OpId| &*self.module.strings[self.module.operations[op].name];
        let (operations, is_module) = (&self.module.blocks[block].operations, name(op) == b"builtin.module");
        let end = operations.iter().position(|&op| RETURNS.contains(&name(op)));
        match end {
            Some(end) if end + 1 != operations.len() => {
                Err(Violation::new(operations[end], "ends its region, but operations follow"))
            }
            Some(end) if is_module => Err(Violation::new(operations[end], "is in a module, which has no results")),
            None if !is_module => Err(Violation::new(op, "has a region that does not end with a return")),
            _ => Ok(block),
        }
    }

    /// Removes the values of the finished region from scope, and continues with the next region of its operation.
    fn end_region(&mut self) -> Checked {
        let Some(level) = self.stack.pop() else { return Ok(()) };
        for &block in &self.module.regions[level.region].blocks {
            let block = &self.module.blocks[block];
            let results = block.operations.iter().flat_map(|&op| &self.module.operations[op].results);
            for value in block.arguments.iter().chain(results) {
                self.depths[value.index()] = 0;
            }
        }
        let mut regions = level.regions;
        match regions.next() {
            Some(&next) => self.begin_region(level.op, next, regions),
            None => {
                self.define(&self.module.operations[level.op].results);
                Ok(())
            }
        }
    }
}
