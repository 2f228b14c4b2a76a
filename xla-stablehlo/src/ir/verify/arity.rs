//! Verification of the numbers of operands, results and regions and of required attributes, against the table of forms.

use super::{Checked, Violation};
use crate::ir::forms::{self, Form};
use crate::ir::{AttrId, Module, OpId, StringId};

pub(super) fn verify(module: &Module) -> Checked {
    let mut known: Vec<Option<Option<&'static Form>>> = Vec::new();
    for op in module.walk() {
        let name = module.operations[op].name;
        let index = xla_hlo::entity::EntityId::index(name);
        if index >= known.len() {
            known.resize(index + 1, None);
        }
        let form = *known[index].get_or_insert_with(|| forms::form(&module.strings[name]));
        match form {
            Some(form) => against(module, op, form)?,
            None if is_versioned(module, op) => return Err(unknown(module, op)),
            None => {}
        }
    }
    Ok(())
}

/// Whether an operation belongs to a dialect that the table of forms covers completely.
fn is_versioned(module: &Module, op: OpId) -> bool {
    let name = &module.strings[module.operations[op].name];
    name.starts_with(b"vhlo.") || name.starts_with(b"stablehlo.")
}

fn unknown(module: &Module, op: OpId) -> Violation {
    let version = module.version.map_or(String::new(), |version| format!(" of VHLO {version}"));
    Violation { op, what: format!("is an operation{version} that is unknown here"), is_unknown: true }
}

fn against(module: &Module, op: OpId, form: &Form) -> Checked {
    let operation = &module.operations[op];
    for (what, count, names) in [
        ("operands", operation.operands.len(), form.operands),
        ("results", operation.results.len(), form.results),
        ("regions", operation.regions.len(), form.regions),
    ] {
        if !fits(count, names) {
            return Err(Violation::new(op, format!("has {count} {what}, not [{}]", names.join(", "))));
        }
    }
    if let Some(twice) = operation.attributes.windows(2).find(|pair| name(module, pair[0]) == name(module, pair[1])) {
        return Err(Violation::new(op, format!("has its attribute {} twice", module.text(twice[0].0))));
    }
    // Properties are sorted by name, as the attributes of the operation are.
    let is_versioned = module.strings[operation.name].starts_with(b"vhlo.");
    let mut attributes = operation.attributes.iter().map(|&(name, _)| &*module.strings[name]).peekable();
    for &property in form.properties {
        let may_be_absent = if is_versioned { property.starts_with('?') } else { forms::may_be_left_out(property) };
        let name = property.trim_start_matches('?').as_bytes();
        while attributes.next_if(|&known| known < name).is_some() {}
        if attributes.peek() != Some(&name) && !may_be_absent {
            return Err(Violation::new(op, format!("lacks its attribute {property}")));
        }
    }
    Ok(())
}

/// Returns the name of an attribute.
fn name(module: &Module, (name, _): (StringId, AttrId)) -> &[u8] {
    &module.strings[name]
}

/// Whether `count` items can have these names. Names with `*` are groups, which must be equally large.
fn fits(count: usize, names: &[&str]) -> bool {
    let groups = names.iter().filter(|name| name.starts_with('*')).count();
    match count.checked_sub(names.len() - groups) {
        Some(rest) if groups > 0 => rest.is_multiple_of(groups),
        rest => rest == Some(0),
    }
}
