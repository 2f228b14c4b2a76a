//! Symbols: names of functions and meshes, unique in their module.

use std::collections::HashMap;

use super::Violation;
use crate::ir::{Attribute, Module, OpId};

/// Functions by module and name.
pub(super) struct Symbols<'m> {
    operations: HashMap<&'m [u8], OpId>,
}

impl<'m> Symbols<'m> {
    /// The symbols of the outermost module; those of inner modules are checked, but nothing here refers to them.
    pub fn new(module: &'m Module) -> Result<Symbols<'m>, Violation> {
        let mut outermost = HashMap::new();
        for table in module.walk().filter(|&op| &*module.strings[module.operations[op].name] == b"builtin.module") {
            let mut symbols = HashMap::new();
            let blocks = module.operations[table].regions.iter().flat_map(|&region| &module.regions[region].blocks);
            for &op in blocks.flat_map(|&block| &module.blocks[block].operations) {
                let Some(name) = name(module, op) else { continue };
                if symbols.insert(name, op).is_some() {
                    let name = String::from_utf8_lossy(name);
                    return Err(Violation::new(op, format!("defines @{name}, which is defined before")));
                }
            }
            if Some(table) == module.top {
                outermost = symbols;
            }
        }
        Ok(Symbols { operations: outermost })
    }

    pub fn get(&self, name: &[u8]) -> Option<OpId> {
        self.operations.get(name).copied()
    }
}

fn name(module: &Module, op: OpId) -> Option<&[u8]> {
    string(module, op, "sym_name")
}

/// Text of a string or of the last name of a symbol.
pub(super) fn string<'m>(module: &'m Module, op: OpId, attribute: &str) -> Option<&'m [u8]> {
    let mut id = module.attribute(op, attribute)?;
    if let Attribute::Symbol(path) = &module.attributes[id] {
        id = *path.last()?;
    }
    match module.attributes[id] {
        Attribute::String(string) => Some(&module.strings[string]),
        _ => None,
    }
}
