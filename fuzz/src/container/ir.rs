//! Blocks, operations and regions of the IR section.

use super::numbers::{Numbers, put};

/// Maximum nesting of regions that is decoded.
const DEEPEST: usize = 64;

#[derive(Clone, Default)]
pub struct Block {
    /// Types of arguments with their flags, and locations if the flag is set.
    pub arguments: Vec<(u64, Option<u64>)>,
    pub operations: Vec<Operation>,
}

#[derive(Clone, Default)]
pub struct Region {
    /// Difference between the stated and the actual number of values of the region.
    pub surplus: u64,
    pub blocks: Vec<Block>,
}

#[derive(Clone, Default)]
pub struct Operation {
    pub name: u64,
    pub location: u64,
    pub attributes: Option<u64>,
    pub properties: Option<u64>,
    pub results: Vec<u64>,
    pub operands: Vec<u64>,
    pub regions: Vec<Region>,
    pub is_isolated: bool,
}

impl Block {
    pub fn decode(r: &mut Numbers<'_>, version: u64, depth: usize) -> Option<Block> {
        let head = r.varint()?;
        let mut arguments = Vec::new();
        if head & 1 == 1 {
            arguments = r.list(|r| {
                let ty = r.varint()?;
                let has_location = version < 4 || ty & 1 == 1;
                Some((ty, if has_location { Some(r.varint()?) } else { None }))
            })?;
            if version >= 3 && r.byte()? != 0 {
                use_lists(r, arguments.len())?;
            }
        }
        let count = head >> 1;
        if count > r.0.len() as u64 || depth > DEEPEST {
            return None;
        }
        let operations = (0..count).map(|_| Operation::decode(r, version, depth)).collect::<Option<_>>()?;
        Some(Block { arguments, operations })
    }

    pub fn encode(&self, bytes: &mut Vec<u8>, version: u64) {
        put(bytes, (self.operations.len() as u64) << 1 | u64::from(!self.arguments.is_empty()));
        if !self.arguments.is_empty() {
            put(bytes, self.arguments.len() as u64);
            for &(ty, location) in &self.arguments {
                put(bytes, if version < 4 { ty } else { ty & !1 | u64::from(location.is_some()) });
                if version < 4 || location.is_some() {
                    put(bytes, location.unwrap_or(0));
                }
            }
            if version >= 3 {
                bytes.push(0);
            }
        }
        for operation in &self.operations {
            operation.encode(bytes, version);
        }
    }
}

impl Operation {
    fn decode(r: &mut Numbers<'_>, version: u64, depth: usize) -> Option<Operation> {
        let (name, mask, location) = (r.varint()?, r.byte()?, r.varint()?);
        // Operations with successors (0x08) or an unknown flag (0x80) are not decoded.
        if mask & 0x88 != 0 {
            return None;
        }
        let mut part = |bit: u8| if mask & bit != 0 { Some(Some(r.varint()?)) } else { Some(None) };
        let (attributes, properties) = (part(0x01)?, part(0x40)?);
        let mut list = |bit: u8| if mask & bit != 0 { r.list(Numbers::varint) } else { Some(Vec::new()) };
        let (results, operands) = (list(0x02)?, list(0x04)?);
        if mask & 0x20 != 0 {
            use_lists(r, results.len())?;
        }
        let mut operation = Operation { name, location, attributes, properties, results, operands, ..Self::default() };
        if mask & 0x10 != 0 {
            let head = r.varint()?;
            let (count, is_isolated) = (head >> 1, head & 1 == 1);
            operation.is_isolated = is_isolated;
            if is_isolated && version >= 2 {
                r.byte()?;
                let length = usize::try_from(r.varint()?).ok()?;
                let mut section = Numbers(r.take(length)?);
                operation.regions = regions(&mut section, count, version, depth)?;
            } else {
                operation.regions = regions(r, count, version, depth)?;
            }
        }
        Some(operation)
    }

    fn encode(&self, bytes: &mut Vec<u8>, version: u64) {
        let flag = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
        put(bytes, self.name);
        bytes.push(
            flag(self.attributes.is_some(), 0x01)
                | flag(self.properties.is_some(), 0x40)
                | flag(!self.results.is_empty(), 0x02)
                | flag(!self.operands.is_empty(), 0x04)
                | flag(!self.regions.is_empty(), 0x10),
        );
        put(bytes, self.location);
        for part in self.attributes.iter().chain(&self.properties) {
            put(bytes, *part);
        }
        for list in [&self.results, &self.operands].into_iter().filter(|list| !list.is_empty()) {
            put(bytes, list.len() as u64);
            list.iter().for_each(|&value| put(bytes, value));
        }
        if self.regions.is_empty() {
            return;
        }
        put(bytes, (self.regions.len() as u64) << 1 | u64::from(self.is_isolated));
        let mut regions = Vec::new();
        self.regions.iter().for_each(|region| region.encode(&mut regions, version));
        if self.is_isolated && version >= 2 {
            bytes.push(4);
            put(bytes, regions.len() as u64);
        }
        bytes.extend(regions);
    }
}

/// Skips the use-list orders of `values` values, which are not kept.
fn use_lists(r: &mut Numbers<'_>, values: usize) -> Option<()> {
    let entries = if values > 1 { r.varint()? } else { 1 };
    for _ in 0..entries {
        if values > 1 {
            r.varint()?;
        }
        let count = r.varint()? >> 1;
        for _ in 0..count {
            r.varint()?;
        }
    }
    Some(())
}

fn regions(r: &mut Numbers<'_>, count: u64, version: u64, depth: usize) -> Option<Vec<Region>> {
    if count > r.0.len() as u64 {
        return None;
    }
    (0..count).map(|_| Region::decode(r, version, depth + 1)).collect()
}

impl Region {
    fn decode(r: &mut Numbers<'_>, version: u64, depth: usize) -> Option<Region> {
        let count = r.varint()?;
        if count == 0 {
            return Some(Region::default());
        }
        let values = r.varint()?;
        if count > r.0.len() as u64 {
            return None;
        }
        let blocks = (0..count).map(|_| Block::decode(r, version, depth)).collect::<Option<_>>()?;
        let region = Region { surplus: 0, blocks };
        let surplus = values.wrapping_sub(region.values());
        Some(Region { surplus, ..region })
    }

    fn encode(&self, bytes: &mut Vec<u8>, version: u64) {
        put(bytes, self.blocks.len() as u64);
        if !self.blocks.is_empty() {
            put(bytes, self.values().wrapping_add(self.surplus));
            self.blocks.iter().for_each(|block| block.encode(bytes, version));
        }
    }

    /// Returns the number of values that the region defines.
    fn values(&self) -> u64 {
        let results = |block: &Block| block.operations.iter().map(|operation| operation.results.len()).sum::<usize>();
        self.blocks.iter().map(|block| (block.arguments.len() + results(block)) as u64).sum()
    }
}
