//! Verification of the arguments and returned values of loop and branch regions.

use super::typing::Types;
use super::{Checked, Violation};
use crate::ir::{Block, Module, OpId, RegionId, ValueId};

pub(super) fn verify(module: &Module, types: &Types<'_>, op: OpId) -> Checked {
    let operation = &module.operations[op];
    match &*module.strings[operation.name] {
        b"vhlo.while_v1" | b"stablehlo.while" => {
            let [condition, body] = operation.regions[..] else { return Ok(()) };
            for (region, name) in [(condition, "condition"), (body, "body")] {
                let arguments = &block(module, region).arguments;
                values(module, types, op, (arguments, &format!("arguments of the {name}")), &operation.operands)?;
            }
            values(module, types, op, (returned(module, body), "values that the body returns"), &operation.results)
        }
        b"vhlo.if_v1" | b"vhlo.case_v1" | b"stablehlo.if" | b"stablehlo.case" => {
            for &region in &operation.regions {
                let arguments = &block(module, region).arguments;
                values(module, types, op, (arguments, "arguments of a branch"), &[])?;
                let returned = returned(module, region);
                values(module, types, op, (returned, "values that a branch returns"), &operation.results)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the only block of a region.
pub(super) fn block(module: &Module, region: RegionId) -> &Block {
    &module.blocks[module.regions[region].blocks[0]]
}

/// Returns the operands of the return operation at the end of a region.
pub(super) fn returned(module: &Module, region: RegionId) -> &[ValueId] {
    block(module, region).operations.last().map_or(&[], |&op| &module.operations[op].operands)
}

/// Checks that the values `found` have the types of the values `wanted`.
fn values(
    module: &Module,
    types: &Types<'_>,
    op: OpId,
    (found, what): (&[ValueId], &str),
    wanted: &[ValueId],
) -> Checked {
    let ty = |&value: &ValueId| module.values[value].ty;
    if found.len() != wanted.len() {
        return Err(Violation::new(op, format!("has {} {what}, not {}", found.len(), wanted.len())));
    }
    match found.iter().zip(wanted).find(|(found, wanted)| !types.agree(ty(found), ty(wanted))) {
        Some((found, wanted)) => {
            let (found, wanted) = (module.type_text(ty(found)), module.type_text(ty(wanted)));
            Err(Violation::new(op, format!("has {found} among the {what}, not {wanted}")))
        }
        None => Ok(()),
    }
}
