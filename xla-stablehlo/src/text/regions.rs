//! Parser of regions, blocks and value names.

use xla_hlo::entity::EntityId;
use xla_hlo::{Error, Result};

use super::reader::Reader;
use crate::ir::{AttrId, Block, Region, RegionId, TypeId, Value, ValueId};

/// Argument of a region: name, type, location.
pub(super) type Argument<'t> = (&'t str, TypeId, Option<AttrId>);

impl<'t> Reader<'t> {
    /// Parses `{ operations }`. The arguments precede the region in the text, or follow the label of the block.
    pub(super) fn region(&mut self, arguments: Vec<Argument<'t>>) -> Result<RegionId> {
        self.nested(|reader| {
            reader.cursor.expect("{")?;
            let outer = reader.defined.len();
            let mut block = Block::default();
            for argument in arguments {
                block.arguments.push(reader.define_argument(argument)?);
            }
            if reader.cursor.eat("^") {
                reader.cursor.suffix("the name of a block")?;
                if reader.cursor.is("(") {
                    for argument in reader.arguments()? {
                        block.arguments.push(reader.define_argument(argument)?);
                    }
                }
                reader.cursor.expect(":")?;
            }
            while !reader.cursor.eat("}") {
                let at = reader.cursor.offset();
                if reader.cursor.is("^") {
                    return Err(reader
                        .cursor
                        .unimplemented_at(at, "a region of several blocks is not supported in StableHLO"));
                }
                block.operations.push(reader.operation()?);
            }
            for name in reader.defined.drain(outer..) {
                reader.names.remove(name);
            }
            let block = reader.module.blocks.push(block);
            Ok(reader.module.regions.push(Region { blocks: vec![block] }))
        })
    }

    /// Parses a region that does not see values of enclosing regions.
    pub(super) fn isolated_region(&mut self, arguments: Vec<Argument<'t>>) -> Result<RegionId> {
        let (names, defined) = (std::mem::take(&mut self.names), std::mem::take(&mut self.defined));
        let region = self.region(arguments);
        (self.names, self.defined) = (names, defined);
        region
    }

    /// Parses `(%a: type loc(...), ...)`.
    pub(super) fn arguments(&mut self) -> Result<Vec<Argument<'t>>> {
        self.list(["(", ")"], |reader| {
            let name = reader.value_name()?;
            reader.cursor.expect(":")?;
            let ty = reader.ty()?;
            Ok((name, ty, reader.location_if_any()?))
        })
    }

    fn define_argument(&mut self, (name, ty, location): Argument<'t>) -> Result<ValueId> {
        let value = self.module.values.push(Value { ty, location });
        self.define(name, value, 1)?;
        Ok(value)
    }

    /// Defines a name in this region for `count` consecutive values.
    pub(super) fn define(&mut self, name: &'t str, first: ValueId, count: usize) -> Result<()> {
        if self.names.insert(name, (first, count)).is_some() {
            let at = self.cursor.offset();
            return Err(self.cursor.error_at(at, format!("%{name} is defined twice")));
        }
        self.defined.push(name);
        Ok(())
    }

    /// Parses `%name`.
    pub(super) fn value_name(&mut self) -> Result<&'t str> {
        self.cursor.expect("%")?;
        self.cursor.suffix("the name of a value")
    }

    /// Parses the use of a value: `%name` or `%name#1`.
    pub(super) fn value(&mut self) -> Result<ValueId> {
        let at = self.cursor.offset();
        let name = self.value_name()?;
        let index = if self.cursor.eat_directly("#") { self.cursor.digits("the number of a result")? } else { 0 };
        let &(first, count) = self.names.get(name).ok_or_else(|| self.undefined(at, name))?;
        match usize::try_from(index) {
            Ok(index) if index < count => Ok(ValueId::from_index(first.index() + index)),
            _ => Err(self.cursor.error_at(at, format!("%{name} has {count} values, but no #{index}"))),
        }
    }

    fn undefined(&self, at: usize, name: &str) -> Error {
        self.cursor.error_at(at, format!("%{name} is not defined before this use"))
    }

    /// Parses a possibly empty comma-separated list of value uses. A comma before another kind of token is not
    /// consumed.
    pub(super) fn values(&mut self) -> Result<Vec<ValueId>> {
        let mut values = Vec::new();
        if !self.cursor.is("%") {
            return Ok(values);
        }
        loop {
            values.push(self.value()?);
            let mut ahead = self.cursor.clone();
            if !ahead.eat(",") || !ahead.is("%") {
                return Ok(values);
            }
            self.cursor = ahead;
        }
    }
}
