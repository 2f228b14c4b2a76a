//! Parser of locations: `loc("file":1:2)`, `loc("name"(child))`, `loc(callsite(callee at caller))`, `loc(#loc1)`.

use xla_hlo::Result;

use super::reader::Reader;
use crate::ir::{AttrId, Attribute, Few, Location};

impl Reader<'_> {
    /// Parses an optional location.
    pub(super) fn location_if_any(&mut self) -> Result<Option<AttrId>> {
        if self.cursor.is("loc") { Ok(Some(self.location()?)) } else { Ok(None) }
    }

    /// Parses `loc(...)`.
    pub(super) fn location(&mut self) -> Result<AttrId> {
        self.cursor.expect("loc")?;
        self.cursor.expect("(")?;
        let location = self.inner_location()?;
        self.cursor.expect(")")?;
        Ok(location)
    }

    /// Parses the location between the parentheses.
    fn inner_location(&mut self) -> Result<AttrId> {
        self.nested(|reader| {
            let at = reader.cursor.offset();
            if reader.cursor.eat("#") {
                let name = reader.cursor.suffix("the name of an alias")?;
                return Ok(reader.alias(name, at));
            }
            let location = if reader.cursor.eat("unknown") {
                Location::Unknown
            } else if reader.cursor.eat("callsite") {
                reader.cursor.expect("(")?;
                let callee = reader.inner_location()?;
                reader.cursor.expect("at")?;
                let caller = reader.inner_location()?;
                reader.cursor.expect(")")?;
                Location::CallSite { callee, caller }
            } else if reader.cursor.eat("fused") {
                let metadata = if reader.cursor.eat("<") {
                    let metadata = reader.attribute()?;
                    reader.cursor.expect(">")?;
                    Some(metadata)
                } else {
                    None
                };
                Location::Fused { locations: reader.list(["[", "]"], Self::inner_location)?.into(), metadata }
            } else {
                reader.named_location()?
            };
            Ok(reader.push(Attribute::Location(location)))
        })
    }

    /// Parses a file position, `"file":line:column to line:column`, or a name, `"name"(location)`.
    fn named_location(&mut self) -> Result<Location> {
        let text = self.cursor.string("a location")?;
        let text = self.push_string(&text);
        if self.cursor.eat("(") {
            let child = self.inner_location()?;
            self.cursor.expect(")")?;
            return Ok(Location::Name { name: text, child });
        }
        if !self.cursor.eat(":") {
            let child = self.push(Attribute::Location(Location::Unknown));
            return Ok(Location::Name { name: text, child });
        }
        let mut range = Few::from_elem(self.line("a line")?, 1);
        if self.cursor.eat(":") {
            range.push(self.line("a column")?);
        }
        if self.cursor.eat("to") {
            if !self.cursor.is(":") {
                range.push(self.line("the last line")?);
            }
            self.cursor.expect(":")?;
            range.push(self.line("the last column")?);
        }
        Ok(Location::File { file: text, range })
    }

    /// Parses a line or column number.
    fn line(&mut self, what: &str) -> Result<u32> {
        Ok(u32::try_from(self.cursor.digits(what)?).unwrap_or(u32::MAX))
    }
}
