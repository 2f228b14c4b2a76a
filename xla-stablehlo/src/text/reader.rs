//! State of the parser: cursor, tables, aliases, names in scope.

use std::collections::HashMap;

use xla_hlo::Result;
use xla_hlo::entity::EntityId;
use xla_hlo::text::error_at;

use super::cursor::Cursor;
use crate::ir::{AttrId, Attribute, Location, Module, TypeId, ValueId};

/// Limit on the nesting of attributes, types and regions, which are parsed recursively.
const MAX_DEPTH: usize = 100;

pub(super) struct Reader<'t> {
    pub cursor: Cursor<'t>,
    pub module: Module,
    /// Types by their text.
    pub types: HashMap<&'t str, TypeId>,
    /// Number of dictionaries around the cursor, without those of operations.
    pub dictionaries: usize,
    aliases: HashMap<&'t str, Alias>,
    type_aliases: HashMap<&'t str, TypeId>,
    /// Values in scope by name: the first value, and the number of values that the name denotes.
    pub names: HashMap<&'t str, (ValueId, usize)>,
    /// Names that the open regions define, in textual order.
    pub defined: Vec<&'t str>,
    depth: usize,
}

/// Attribute alias, which may be used before its definition.
struct Alias {
    attribute: AttrId,
    is_defined: bool,
    /// Offset of the first use.
    used_at: usize,
}

impl<'t> Reader<'t> {
    pub fn new(text: &'t str) -> Reader<'t> {
        let mut module = Module::default();
        module.lines = Some(crate::ir::Lines::of(text));
        Reader::within(module, text)
    }

    /// Creates a parser for a part of a program, which adds to the tables of `module`.
    pub fn within(module: Module, text: &'t str) -> Reader<'t> {
        Reader {
            cursor: Cursor::new(text),
            module,
            types: HashMap::new(),
            dictionaries: 0,
            aliases: HashMap::new(),
            type_aliases: HashMap::new(),
            names: HashMap::new(),
            defined: Vec::new(),
            depth: 0,
        }
    }

    /// Parses a whole program: alias definitions mixed with operations. If the operations are not exactly one module, a
    /// module is created around them.
    pub fn module(mut self) -> Result<Module> {
        let mut operations = Vec::new();
        while !self.cursor.is_at_end() {
            if self.cursor.eat("#") {
                self.define_alias()?;
            } else if self.cursor.eat("!") {
                let name = self.cursor.suffix("the name of an alias")?;
                self.cursor.expect("=")?;
                let ty = self.ty()?;
                self.type_aliases.insert(name, ty);
            } else {
                operations.push(self.operation()?);
            }
        }
        self.check_aliases()?;
        self.module.top = Some(self.top(operations)?);
        self.module.check_tables()?;
        if let Err(violation) = crate::ir::verify(&self.module) {
            let at = self.module.operations[violation.op].offset;
            return Err(error_at(self.cursor.text(), at, violation.error(&self.module)));
        }
        Ok(self.module)
    }

    /// Parses a text that consists of one `item`.
    pub fn whole<T>(&mut self, item: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let item = item(self)?;
        if !self.cursor.is_at_end() {
            return Err(self.cursor.expected("the end of the text"));
        }
        self.check_aliases()?;
        Ok(item)
    }

    /// Checks that all used aliases are defined.
    fn check_aliases(&self) -> Result<()> {
        let undefined = self.aliases.iter().filter(|(_, alias)| !alias.is_defined);
        match undefined.min_by_key(|(_, alias)| alias.used_at) {
            Some((name, alias)) => Err(self.cursor.error_at(alias.used_at, format!("#{name} is not defined"))),
            None => Ok(()),
        }
    }

    /// Runs `f` one nesting level deeper.
    pub fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            let at = self.cursor.offset();
            return Err(self.cursor.error_at(at, format!("the text nests deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Parses a comma-separated list in brackets.
    pub fn list<T>(&mut self, [open, close]: [&str; 2], item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.cursor.expect(open)?;
        self.list_up_to(close, item)
    }

    /// Parses comma-separated items up to the closing bracket.
    pub fn list_up_to<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.cursor.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.cursor.eat(",") {
                self.cursor.expect(close)?;
                return Ok(items);
            }
        }
    }

    /// Parses comma-separated items up to the closing bracket, optionally with a trailing comma.
    pub fn entries_up_to<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.cursor.eat(close) {
            items.push(item(self)?);
            if !self.cursor.eat(",") {
                self.cursor.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    pub fn push(&mut self, attribute: Attribute) -> AttrId {
        self.module.attributes.push(attribute)
    }

    /// Adds a string attribute.
    pub fn push_string(&mut self, bytes: &[u8]) -> AttrId {
        let string = self.module.intern(bytes);
        self.push(Attribute::String(string))
    }

    /// Returns the attribute that an alias denotes.
    pub fn alias(&mut self, name: &'t str, used_at: usize) -> AttrId {
        if let Some(alias) = self.aliases.get(name) {
            return alias.attribute;
        }
        let attribute = self.push(Attribute::Location(Location::Unknown));
        self.aliases.insert(name, Alias { attribute, is_defined: false, used_at });
        attribute
    }

    /// Returns the type that an alias denotes; `None` if it is not defined yet.
    pub fn type_alias(&self, name: &str) -> Option<TypeId> {
        self.type_aliases.get(name).copied()
    }

    fn define_alias(&mut self) -> Result<()> {
        let at = self.cursor.offset();
        let name = self.cursor.suffix("the name of an alias")?;
        self.cursor.expect("=")?;
        let before = self.module.attributes.len();
        let value = self.attribute()?;
        match self.aliases.get_mut(name) {
            None => {
                self.aliases.insert(name, Alias { attribute: value, is_defined: true, used_at: at });
            }
            Some(alias) if alias.is_defined => {
                return Err(self.cursor.error_at(at, format!("#{name} is defined twice")));
            }
            // A copy per alias of one attribute could take more memory than the size of the text.
            Some(_) if value.index() < before => {
                let message = format!("#{name} is another name of an alias and is used before this definition");
                return Err(self.cursor.unimplemented_at(at, message));
            }
            Some(alias) => {
                alias.is_defined = true;
                let value = &mut self.module.attributes[value];
                let value = std::mem::replace(value, Attribute::Location(Location::Unknown));
                self.module.attributes[alias.attribute] = value;
            }
        }
        Ok(())
    }
}
