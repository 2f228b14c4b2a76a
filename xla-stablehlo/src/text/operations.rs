//! Parser of operations: modules, generic forms, and pretty forms of one line.

use xla_hlo::Result;

use super::attributes::Entries;
use super::reader::Reader;
use crate::ir::forms::form;
use crate::ir::{AttrId, Block, Few, OpId, Operation, Region, RegionId, TypeId, Value, ValueId};

/// Parts of an operation that is being parsed.
pub(super) struct Parts {
    pub operands: Vec<ValueId>,
    pub attributes: Entries,
    pub regions: Vec<RegionId>,
    pub results: Vec<TypeId>,
}

impl Parts {
    pub fn new(operands: Vec<ValueId>) -> Parts {
        Parts { operands, attributes: Entries::new(), regions: Vec::new(), results: Vec::new() }
    }
}

/// Names of an operation's results, each with the number of values that it denotes.
type Results<'t> = Vec<(&'t str, usize)>;

/// Limit on the results of an operation.
const MOST_RESULTS: usize = 1 << 20;

impl<'t> Reader<'t> {
    /// Returns the top-level module: the only operation if it is a module, otherwise a new module around all
    /// operations.
    pub(super) fn top(&mut self, operations: Vec<OpId>) -> Result<OpId> {
        let is_module = |op: OpId| &*self.module.strings[self.module.operations[op].name] == b"builtin.module";
        match operations[..] {
            [] => return Err(self.cursor.expected("a module")),
            [one] if is_module(one) => return Ok(one),
            _ => {}
        }
        let offset = self.module.operations[operations[0]].offset;
        let block = self.module.blocks.push(Block { arguments: Vec::new(), operations });
        let region = self.module.regions.push(Region { blocks: vec![block] });
        let name = self.module.intern(b"builtin.module");
        let (operands, results, attributes) = Default::default();
        let regions = vec![region].into();
        let around = Operation { name, operands, results, attributes, regions, location: None, offset };
        Ok(self.module.operations.push(around))
    }

    /// Parses `@name attributes {...} {operations}` after `module`.
    pub(super) fn nested_module(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(Vec::new());
        if self.cursor.is("@") {
            let name = self.symbol_name()?;
            self.set(&mut parts.attributes, "sym_name", name);
        }
        if self.cursor.eat("attributes") {
            parts.attributes.extend(self.entries(["{", "}"])?);
        }
        parts.regions.push(self.isolated_region(Vec::new())?);
        Ok(parts)
    }

    /// Parses an operation in generic or pretty form.
    pub(super) fn operation(&mut self) -> Result<OpId> {
        let at = self.cursor.offset();
        let results = self.result_names()?;
        let name_at = self.cursor.offset();
        if self.cursor.is("\"") {
            let name = self.cursor.string("the name of an operation")?;
            let name = canonical(&String::from_utf8_lossy(&name));
            let parts = self.generic()?;
            return self.finish(&name, parts, results, at);
        }
        let word = self.cursor.word("an operation")?;
        let count = results.iter().map(|&(_, count)| count).sum();
        let name = match word {
            "return" | "call" => format!("func.{word}"),
            "module" => "builtin.module".to_string(),
            _ => canonical(word),
        };
        let parts = match self.special(&name, count)? {
            Some(parts) => parts,
            None if name.contains('.') => self.pretty(&name, count)?,
            None => return Err(self.cursor.error_at(name_at, format!("`{word}` is not an operation"))),
        };
        self.finish(&name, parts, results, at)
    }

    /// Parses `%a, %b:2 =`.
    fn result_names(&mut self) -> Result<Results<'t>> {
        let mut names = Results::new();
        if !self.cursor.is("%") {
            return Ok(names);
        }
        loop {
            let name = self.value_name()?;
            let count = if self.cursor.eat(":") { self.result_count()? } else { 1 };
            names.push((name, count));
            if !self.cursor.eat(",") {
                self.cursor.expect("=")?;
                return Ok(names);
            }
        }
    }

    /// Parses the number of results that a name denotes.
    fn result_count(&mut self) -> Result<usize> {
        let at = self.cursor.offset();
        let count = self.cursor.digits("a number of results")?;
        match usize::try_from(count) {
            Ok(count @ 1..=MOST_RESULTS) => Ok(count),
            _ => Err(self
                .cursor
                .error_at(at, format!("a name cannot denote {count} results; the number must be 1 to {MOST_RESULTS}"))),
        }
    }

    /// Parses `(operands) <{properties}> ({region}, ...) {attributes} : (types) -> types` after the name.
    fn generic(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(self.list(["(", ")"], Self::value)?);
        let at = self.cursor.offset();
        if self.cursor.is("[") {
            return Err(self.cursor.unimplemented_at(at, "a jump to another block is not supported in StableHLO"));
        }
        if self.cursor.eat("<") {
            parts.attributes = self.entries(["{", "}"])?;
            self.cursor.expect(">")?;
        }
        if self.cursor.is("(") {
            parts.regions = self.list(["(", ")"], |reader| reader.region(Vec::new()))?;
        }
        self.attribute_dictionary(&mut parts)?;
        self.cursor.expect(":")?;
        parts.results = self.signature()?.1;
        Ok(parts)
    }

    /// Parses `%a, %b, keyword = value {attributes} : types` after the name.
    fn pretty(&mut self, name: &str, count: usize) -> Result<Parts> {
        let own = own_name(name);
        let in_parentheses = self.cursor.eat("(");
        let mut parts = Parts::new(self.values()?);
        self.keywords(own, !parts.operands.is_empty(), &mut parts.attributes)?;
        if in_parentheses {
            self.cursor.expect(")")?;
        }
        self.attribute_dictionary(&mut parts)?;
        parts.results = self.types_of_results(count)?;
        Ok(parts)
    }

    /// Parses an optional `{name = value}`.
    pub(super) fn attribute_dictionary(&mut self, parts: &mut Parts) -> Result<()> {
        if self.cursor.is("{") {
            parts.attributes.extend(self.entries(["{", "}"])?);
        }
        Ok(())
    }

    /// Parses the types after the colon: of operands and results, or of the results alone, which come last.
    pub(super) fn types_of_results(&mut self, count: usize) -> Result<Vec<TypeId>> {
        if !self.cursor.eat(":") {
            return if count == 0 { Ok(Vec::new()) } else { Err(self.cursor.expected("`:` and types")) };
        }
        let at = self.cursor.offset();
        if self.cursor.is("(") {
            return Ok(self.signature()?.1);
        }
        let mut types = self.types()?;
        if self.cursor.eat("->") {
            return self.result_types();
        }
        match types.len().checked_sub(count) {
            Some(first) => Ok(types.split_off(first)),
            None => {
                let message =
                    format!("the number of types ({}) is less than the number of results ({count})", types.len());
                Err(self.cursor.error_at(at, message))
            }
        }
    }

    /// Adds the operation with its location, and defines the names of its results.
    fn finish(&mut self, name: &str, parts: Parts, results: Results<'t>, at: usize) -> Result<OpId> {
        let location = self.location_if_any()?;
        if name == "func.func" {
            self.remove_empty_body(&parts.regions);
        }
        let attributes = self.normalized(own_name(name), parts.attributes)?;
        let named: usize = results.iter().map(|&(_, count)| count).sum();
        if !results.is_empty() && named != parts.results.len() {
            let message = format!("{name} has {} results, but {named} are named", parts.results.len());
            return Err(self.cursor.error_at(at, message));
        }
        let values = &mut self.module.values;
        let all: Few<ValueId> = parts.results.iter().map(|&ty| values.push(Value { ty, location: None })).collect();
        let mut rest = &all[..];
        for (name, count) in results {
            let (own, others) = rest.split_at(count);
            self.define(name, own[0], count)?;
            rest = others;
        }
        if let ("reduce", Some(location)) = (own_name(name), location) {
            self.place_applied(&parts.regions, location);
        }
        let name = self.module.intern(name.as_bytes());
        let (operands, regions) = (parts.operands.into(), parts.regions.into());
        let operation =
            Operation { name, operands, results: all, attributes: attributes.into(), regions, location, offset: at };
        Ok(self.module.operations.push(operation))
    }

    /// Removes the block of a region that is written as `{}` in generic form. The function is then a declaration
    /// without a body.
    fn remove_empty_body(&mut self, regions: &[RegionId]) {
        for &region in regions {
            let is_empty = |block: &Block| block.operations.is_empty() && block.arguments.is_empty();
            self.module.regions[region].blocks.retain(|&block| !is_empty(&self.module.blocks[block]));
        }
    }

    /// Assigns the location of a reduction to the values and operations of the region that `applies` denotes.
    fn place_applied(&mut self, regions: &[RegionId], location: AttrId) {
        for &block in regions.iter().flat_map(|&region| &self.module.regions[region].blocks) {
            let block = &self.module.blocks[block];
            for &argument in &block.arguments {
                self.module.values[argument].location.get_or_insert(location);
            }
            for &op in &block.operations {
                self.module.operations[op].location.get_or_insert(location);
            }
        }
    }
}

/// Returns the name without its dialect.
pub(super) fn own_name(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, own)| own)
}

/// Returns the canonical name of an operation: MHLO operations that exist in StableHLO become StableHLO's.
pub(super) fn canonical(name: &str) -> String {
    let stable = name.strip_prefix("mhlo.").map(|own| format!("stablehlo.{own}"));
    stable.filter(|name| form(name.as_bytes()).is_some()).unwrap_or_else(|| name.to_string())
}
