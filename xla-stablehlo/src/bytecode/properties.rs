//! The properties section: inherent attributes of operations, indexed by number.

use std::ops::Range;

use xla_hlo::Result;

use super::reader::Reader;

/// Entries of the properties section.
#[derive(Default)]
pub(super) struct Properties<'a> {
    section: Option<Reader<'a>>,
    entries: Vec<Range<usize>>,
}

impl<'a> Properties<'a> {
    pub fn new(mut r: Reader<'a>) -> Result<Properties<'a>> {
        let section = r.clone();
        let entries = r.list(|r| {
            let size = r.count()?;
            let start = r.offset();
            r.take(size)?;
            Ok(start..start + size)
        })?;
        r.finish("the properties")?;
        Ok(Properties { section: Some(section), entries })
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns a reader of the entry at `index`.
    pub fn get(&self, index: usize) -> Option<Reader<'a>> {
        self.section.as_ref()?.at(self.entries.get(index)?.clone())
    }
}
