//! Verifier of VHLO: operations against the table of forms, blocks and their terminators.

use xla_hlo::{Error, Result};

use super::{Form, form};
use crate::ir::{Module, OpId, RegionId};

/// Checks every operation of the dialect: that its form is known, the numbers of operands, results and regions, that
/// its inherent attributes are there, and that its regions are one block that ends with a return.
///
/// A form is accepted in files of any version: jaxlib itself writes `sine_v2`, of VHLO 1.10, into files of 0.9.
///
/// `Error::InvalidArgument` where one is not; `Error::Unimplemented` for an unknown operation.
pub(in crate::bytecode) fn verify(module: &Module) -> Result<()> {
    for op in module.walk() {
        let operation = &module.operations[op];
        for &region in &operation.regions {
            block(module, op, region)?;
        }
        let name = module.text(operation.name);
        if let Some(own) = name.strip_prefix("vhlo.") {
            let Some(form) = form(own.as_bytes()) else { return Err(unknown(module, op)) };
            against(module, op, form)?;
        }
    }
    Ok(())
}

fn against(module: &Module, op: OpId, form: &Form) -> Result<()> {
    let operation = &module.operations[op];
    for (what, count, names) in [
        ("operands", operation.operands.len(), form.operands),
        ("results", operation.results.len(), form.results),
        ("regions", operation.regions.len(), form.regions),
    ] {
        if !fits(count, names) {
            return Err(wrong(module, op, format!("has {count} {what}, not [{}]", names.join(", "))));
        }
    }
    match form.properties.iter().find(|name| module.attribute(op, name).is_none()) {
        Some(missing) => Err(wrong(module, op, format!("lacks its attribute {missing}"))),
        None => Ok(()),
    }
}

/// Whether that many things are what names say, groups of any number being equally large.
fn fits(count: usize, names: &[&str]) -> bool {
    let groups = names.iter().filter(|name| name.starts_with('*')).count();
    match count.checked_sub(names.len() - groups) {
        Some(rest) if groups > 0 => rest.is_multiple_of(groups),
        rest => rest == Some(0),
    }
}

fn block(module: &Module, op: OpId, region: RegionId) -> Result<()> {
    let [block] = module.regions[region].blocks[..] else {
        let count = module.regions[region].blocks.len();
        return Err(wrong(module, op, format!("has a region of {count} blocks, StableHLO's have one")));
    };
    let is_module = &*module.text(module.operations[op].name) == "builtin.module";
    let last = module.blocks[block].operations.last();
    let last = last.map(|&last| module.text(module.operations[last].name));
    match last.as_deref() {
        Some("vhlo.return_v1" | "sdy.return") => Ok(()),
        _ if is_module => Ok(()),
        _ => Err(wrong(module, op, "has a region that does not end with a return")),
    }
}

fn unknown(module: &Module, op: OpId) -> Error {
    let operation = &module.operations[op];
    let version = module.version.map_or(String::new(), |version| format!(" of VHLO {version}"));
    let (offset, name) = (operation.offset, module.text(operation.name));
    Error::unimplemented(format!("bytecode, byte {offset}: operation {name}{version} is unknown here"))
}

fn wrong(module: &Module, op: OpId, what: impl std::fmt::Display) -> Error {
    let operation = &module.operations[op];
    let (offset, name) = (operation.offset, module.text(operation.name));
    Error::invalid_argument(format!("bytecode, byte {offset}: {name} {what}"))
}
