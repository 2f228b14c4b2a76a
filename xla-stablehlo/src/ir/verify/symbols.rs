//! Symbol tables: names of functions and meshes, unique in their module.

use std::collections::HashMap;

use super::Violation;
use crate::ir::{Attribute, Module, OpId};

/// Symbol tables of all modules of a program.
pub(super) struct Symbols<'m> {
    tables: HashMap<OpId, HashMap<&'m [u8], OpId>>,
    /// For each operation of a nested module, that module.
    inner: HashMap<OpId, OpId>,
    top: Option<OpId>,
}

impl<'m> Symbols<'m> {
    /// Builds the symbol table of each module.
    pub fn new(module: &'m Module) -> Result<Symbols<'m>, Violation> {
        let mut symbols = Symbols { tables: HashMap::new(), inner: HashMap::new(), top: module.top };
        for table in module.walk().filter(|&op| is_module(module, op)) {
            let mut names = HashMap::new();
            for op in operations_of(module, table) {
                let Some(name) = name(module, op) else { continue };
                if names.insert(name, op).is_some() {
                    let name = String::from_utf8_lossy(name);
                    return Err(Violation::new(op, format!("defines @{name}, which is defined before")));
                }
            }
            symbols.tables.insert(table, names);
            if Some(table) != module.top {
                symbols.add_inner(module, table);
            }
        }
        Ok(symbols)
    }

    /// Records the operations of a nested module, except those of modules within it.
    fn add_inner(&mut self, module: &Module, table: OpId) {
        let mut stack: Vec<OpId> = operations_of(module, table).collect();
        while let Some(op) = stack.pop() {
            self.inner.insert(op, table);
            if !is_module(module, op) {
                stack.extend(operations_of(module, op));
            }
        }
    }

    /// Resolves a symbol that operation `op` refers to.
    pub fn get(&self, op: OpId, name: &[u8]) -> Option<OpId> {
        let table = self.inner.get(&op).copied().or(self.top)?;
        self.tables.get(&table)?.get(name).copied()
    }
}

fn is_module(module: &Module, op: OpId) -> bool {
    &*module.strings[module.operations[op].name] == b"builtin.module"
}

/// Returns the operations of an operation's regions, without more deeply nested ones.
fn operations_of(module: &Module, op: OpId) -> impl Iterator<Item = OpId> + '_ {
    let blocks = module.operations[op].regions.iter().flat_map(|&region| &module.regions[region].blocks);
    blocks.flat_map(|&block| module.blocks[block].operations.iter().copied())
}

fn name(module: &Module, op: OpId) -> Option<&[u8]> {
    string(module, op, "sym_name")
}

/// Returns the text of a string attribute, or the last name of a symbol attribute.
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
