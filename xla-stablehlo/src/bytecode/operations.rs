//! The IR section: operations with their operands, results, properties and regions, read without recursion.

use std::collections::HashMap;
use std::rc::Rc;

use smallvec::SmallVec;
use xla_hlo::entity::EntityId;
use xla_hlo::{ElementType, Error, Result};

use super::properties::Properties;
use super::reader::Reader;
use super::sections::{Container, Dialects, ELIDED_LOCATIONS, PROPERTIES, REGION_SECTIONS, Section, USE_LISTS};
use crate::ir::{
    AttrId, Attribute, BlockId, Few, Module, OpId, Operation, RegionId, StringId, Type, TypeId, Value, ValueId, forms,
};
use crate::text;

/// Bits of the mask that precedes the fields of an operation.
mod mask {
    pub const ATTRIBUTES: u8 = 0x01;
    pub const RESULTS: u8 = 0x02;
    pub const OPERANDS: u8 = 0x04;
    pub const SUCCESSORS: u8 = 0x08;
    pub const REGIONS: u8 = 0x10;
    pub const USE_LISTS: u8 = 0x20;
    pub const PROPERTIES: u8 = 0x40;
    pub const ALL: u8 = 0x7f;
}

/// Limit on dictionary entries of all operations, per byte of the file.
const ENTRIES_A_BYTE: usize = 8;

/// Attributes of an operation, by name.
type Attributes = SmallVec<[(StringId, AttrId); 2]>;

/// Container version from which the sizes of operand and result groups are encoded as a possibly sparse list.
const SPARSE_SEGMENTS: u64 = 6;

/// Limit on the groups of operands or results of an operation.
const MOST_SEGMENTS: usize = 64;

/// Entry of the table of operation names.
struct OpName {
    /// Name of the dialect, and name of the operation within it.
    parts: (StringId, StringId),
    /// Joined name and property names; `None` until an operation with this name is read.
    known: Option<(StringId, PropertyNames)>,
}

/// Names of an operation's properties, each with a flag for optional ones; `None` for an unknown operation.
type PropertyNames = Option<Rc<[(StringId, bool)]>>;

/// Reads the operations of a file into `module`, which already holds the strings, types and attributes.
pub(super) fn read<'a>(
    container: &Container<'a>,
    mut ir: Reader<'a>,
    properties: Properties<'a>,
    dialects: &Dialects,
    module: &mut Module,
) -> Result<()> {
    let name = |&(dialect, own): &(usize, StringId)| OpName { parts: (dialects.names[dialect], own), known: None };
    let names = dialects.operations.iter().map(name).collect();
    let version = container.version;
    let entries_left = ENTRIES_A_BYTE * container.length();
    let mut builder =
        Builder { version, module, names, properties, stack: Vec::new(), entries_left, tensors: HashMap::new() };
    builder.top(&mut ir)?;
    while let Some(level) = builder.stack.last_mut() {
        if level.operations > 0 {
            level.operations -= 1;
            builder.operation(&mut ir)?;
        } else if level.blocks > 0 {
            level.blocks -= 1;
            builder.block(&mut ir)?;
        } else {
            builder.end_region(&mut ir)?;
        }
    }
    ir.finish("the operations")
}

/// Region that is being read, with the position in it.
struct Level<'a> {
    region: RegionId,
    block: Option<BlockId>,
    /// Number of operations of the block, blocks of the region and regions of the operation that remain to be read.
    operations: usize,
    blocks: usize,
    regions: usize,
    op: Option<OpId>,
    /// Whether values of enclosing regions are not visible.
    is_isolated: bool,
    /// Reader to continue with after the operation's regions, if they are in a separate section.
    after: Option<Reader<'a>>,
    /// Number of the region's first value, the declared count of values, and the values defined up to now.
    first: u64,
    count: u64,
    values: Vec<ValueId>,
}

struct Builder<'a, 'm> {
    version: u64,
    module: &'m mut Module,
    names: Vec<OpName>,
    properties: Properties<'a>,
    stack: Vec<Level<'a>>,
    /// Remaining budget of dictionary entries; see [`ENTRIES_A_BYTE`].
    entries_left: usize,
    /// Dense arrays that were converted to tensors, and the tensors.
    tensors: HashMap<AttrId, AttrId>,
}

impl<'a> Builder<'a, '_> {
    /// Reads the top-level block, which holds one operation, the module. The block belongs to no region and defines no
    /// values.
    fn top(&mut self, ir: &mut Reader<'a>) -> Result<()> {
        let (offset, (operations, has_arguments)) = (ir.offset(), ir.flagged()?);
        if operations != 1 || has_arguments {
            return Err(ir.error_at(offset, "the file must hold one operation, the module"));
        }
        let block = self.module.blocks.push(Default::default());
        let region = self.module.regions.push(Default::default());
        self.stack.push(Level {
            region,
            block: Some(block),
            operations: 1,
            blocks: 0,
            regions: 0,
            op: None,
            is_isolated: true,
            after: None,
            first: 0,
            count: 0,
            values: Vec::new(),
        });
        Ok(())
    }

    fn level(&mut self) -> &mut Level<'a> {
        self.stack.last_mut().expect("the stack of regions is not empty while operations are read")
    }

    /// Reads the header of a block: number of operations and arguments.
    fn block(&mut self, ir: &mut Reader<'a>) -> Result<()> {
        let (offset, (operations, has_arguments)) = (ir.offset(), ir.flagged()?);
        let operations = ir.checked_count(operations, offset)?;
        let mut arguments = Vec::new();
        if has_arguments {
            arguments = ir.list(|r| self.argument(r))?;
            if self.version >= USE_LISTS && ir.byte()? != 0 {
                use_lists(ir, arguments.len())?;
            }
        }
        // The encoding of an operation takes at least three bytes.
        self.module.operations.reserve(operations.min(ir.remaining() / 3));
        let list = Vec::with_capacity(operations.min(ir.remaining() / 3));
        let block = self.module.blocks.push(crate::ir::Block { arguments, operations: list });
        let region = self.level().region;
        self.module.regions[region].blocks.push(block);
        let level = self.level();
        (level.block, level.operations) = (Some(block), operations);
        Ok(())
    }

    fn argument(&mut self, r: &mut Reader<'a>) -> Result<ValueId> {
        let offset = r.offset();
        if self.version < ELIDED_LOCATIONS {
            let (ty, location) = (r.ty()?, Some(r.attribute()?));
            return self.define(ty, location, r, offset);
        }
        let (index, has_location) = r.flagged()?;
        let ty = r.type_at(index, offset)?;
        let location = if has_location { Some(r.attribute()?) } else { None };
        self.define(ty, location, r, offset)
    }

    /// Defines a new value in the current region.
    fn define(&mut self, ty: TypeId, location: Option<AttrId>, r: &Reader<'_>, offset: usize) -> Result<ValueId> {
        let value = self.module.values.push(Value { ty, location });
        let level = self.level();
        level.values.push(value);
        match level.values.len() as u64 > level.count {
            true => Err(r.error_at(offset, format!("the region has more than {} values", level.count))),
            false => Ok(value),
        }
    }

    /// Reads a value number and resolves it in this region or an enclosing one.
    fn operand(&self, r: &mut Reader<'a>) -> Result<ValueId> {
        let (offset, number) = (r.offset(), r.varint()?);
        for level in self.stack.iter().rev() {
            if let Some(index) = number.checked_sub(level.first) {
                let value = usize::try_from(index).ok().and_then(|index| level.values.get(index));
                return value.copied().ok_or_else(|| r.error_at(offset, format!("value {number} is not defined yet")));
            }
            if level.is_isolated {
                break;
            }
        }
        Err(r.error_at(offset, format!("value {number} is not visible in this region")))
    }

    fn operation(&mut self, ir: &mut Reader<'a>) -> Result<()> {
        let offset = ir.offset();
        let (name, properties) = self.name(ir)?;
        let (mask_offset, mask) = (ir.offset(), ir.byte()?);
        if mask & !mask::ALL != 0 {
            return Err(ir.error_at(mask_offset, format!("the mask {mask:#04x} of an operation has unknown bits")));
        }
        let location = ir.attribute()?;
        let mut attributes = SmallVec::new();
        if mask & mask::ATTRIBUTES != 0 {
            self.dictionary(ir, &mut attributes)?;
        }
        if mask & mask::PROPERTIES != 0 {
            self.properties(ir, name, properties, &mut attributes)?;
        }
        if self.is_versioned(name) {
            attributes.sort_by(|&(a, _), &(b, _)| self.module.strings[a].cmp(&self.module.strings[b]));
        } else {
            attributes = self.normalized(offset, name, attributes)?;
        }
        let types = if mask & mask::RESULTS != 0 { ir.few(Reader::ty)? } else { Few::new() };
        let operands = if mask & mask::OPERANDS != 0 { ir.few(|r| self.operand(r))? } else { Few::new() };
        if mask & mask::SUCCESSORS != 0 {
            return Err(Error::unimplemented(format!(
                "bytecode, byte {offset}: {} jumps to another block, which StableHLO does not support",
                self.module.text(name)
            )));
        }
        if mask & mask::USE_LISTS != 0 {
            use_lists(ir, types.len())?;
        }
        let define = |ty| self.define(ty, None, ir, offset);
        let results = types.into_iter().map(define).collect::<Result<_>>()?;
        let operation =
            Operation { name, operands, results, attributes, regions: Few::new(), location: Some(location), offset };
        let op = self.module.operations.push(operation);
        if let Some(block) = self.level().block {
            self.module.blocks[block].operations.push(op);
        }
        if self.module.top.is_none() {
            self.module.top = Some(op);
        }
        if mask & mask::REGIONS != 0 {
            self.regions(ir, op)?;
        }
        Ok(())
    }

    /// Reads an operation's name; returns the full name and the names of the properties.
    fn name(&mut self, ir: &mut Reader<'a>) -> Result<(StringId, PropertyNames)> {
        let (offset, index) = (ir.offset(), ir.varint()?);
        let known = self.names.len();
        let name = usize::try_from(index).ok().and_then(|index| self.names.get_mut(index));
        let name = name.ok_or_else(|| {
            ir.error_at(offset, format!("operation name {index} is out of range: the bytecode has {known}"))
        })?;
        if name.known.is_none() {
            let joined = [&*self.module.strings[name.parts.0], b".", &self.module.strings[name.parts.1]].concat();
            let properties = forms::properties(&joined).map(|properties| {
                let property = |name: &&str| match name.strip_prefix('?') {
                    Some(name) => (self.module.intern(name.as_bytes()), true),
                    None => (self.module.intern(name.as_bytes()), false),
                };
                properties.iter().map(property).collect()
            });
            name.known = Some((self.module.intern(&joined), properties));
        }
        Ok(name.known.clone().expect("the name was set above"))
    }

    /// Reads the attribute dictionary of an operation. In old containers, it also holds the inherent attributes.
    fn dictionary(&mut self, ir: &mut Reader<'a>, attributes: &mut Attributes) -> Result<()> {
        let (offset, dictionary) = (ir.offset(), ir.attribute()?);
        let Attribute::Dictionary(entries) = &self.module.attributes[dictionary] else {
            return Err(ir.error_at(offset, "the attributes of an operation are not a dictionary"));
        };
        // Operations may share a dictionary, so the number of attributes is not bounded by the size of the file.
        self.entries_left = match self.entries_left.checked_sub(entries.len()) {
            Some(left) => left,
            None => {
                return Err(Error::resource_exhausted(format!(
                    "bytecode, byte {offset}: operations have more attributes than {ENTRIES_A_BYTE} for each byte of the file"
                )));
            }
        };
        for &(name, value) in entries {
            match self.module.attributes[name] {
                Attribute::String(name) => attributes.push((name, value)),
                _ => return Err(ir.error_at(offset, "the name of an attribute is not a string")),
            }
        }
        Ok(())
    }

    /// Reads the properties of an operation and adds them to `attributes` under their names.
    fn properties(
        &mut self,
        ir: &mut Reader<'a>,
        name: StringId,
        properties: PropertyNames,
        attributes: &mut Attributes,
    ) -> Result<()> {
        let (offset, index) = (ir.offset(), ir.varint()?);
        if self.version < PROPERTIES {
            return Err(ir.error_at(offset, format!("version {} of the container has no properties", self.version)));
        }
        let entry = usize::try_from(index).ok().and_then(|index| self.properties.get(index));
        let known = self.properties.len();
        let entry = entry.ok_or_else(|| {
            ir.error_at(offset, format!("properties {index} are out of range: the bytecode has {known}"))
        })?;
        let Some(properties) = properties else { return Err(self.unknown_operation(offset, name)) };
        let mut r = entry;
        let mut properties = properties.to_vec();
        if self.version < SPARSE_SEGMENTS {
            // Before sparse lists, the segment sizes are sorted by name like all other attributes.
            properties.sort_by(|&(a, _), &(b, _)| self.module.strings[a].cmp(&self.module.strings[b]));
        }
        for (property, is_optional) in properties {
            match &*self.module.strings[property] {
                // The file may predate the last optional properties.
                _ if is_optional && r.is_at_end() => break,
                b"operandSegmentSizes" | b"resultSegmentSizes" => {
                    let sizes = self.segments(&mut r)?;
                    attributes.push((property, sizes));
                }
                _ => {
                    let value = if is_optional { r.optional_attribute()? } else { Some(r.attribute()?) };
                    attributes.extend(value.map(|value| (property, value)));
                }
            }
        }
        r.finish(format_args!("the properties of {}", self.module.text(name)))
    }

    /// Reads the number of operands or results in each group: an attribute, or from version 6 on a list that may be
    /// sparse.
    fn segments(&mut self, r: &mut Reader<'a>) -> Result<AttrId> {
        if self.version < SPARSE_SEGMENTS {
            return r.attribute();
        }
        let offset = r.offset();
        let (count, is_sparse) = r.flagged()?;
        let count = r.checked_count(count, offset)?;
        let mut sizes = Vec::with_capacity(count);
        let index_bits = if is_sparse { r.varint()? } else { 0 };
        if index_bits >= 32 {
            return Err(r.error_at(offset, format!("a sparse list has indices of {index_bits} bits")));
        }
        for _ in 0..count {
            let value = r.varint()?;
            let index = if is_sparse { value as usize & ((1 << index_bits) - 1) } else { sizes.len() };
            if index >= MOST_SEGMENTS {
                return Err(r.error_at(offset, format!("an operation has {index} groups of operands or results")));
            }
            sizes.resize(sizes.len().max(index + 1), 0i32);
            sizes[index] = i32::try_from(value >> index_bits).unwrap_or(i32::MAX);
        }
        let element = self.module.element(ElementType::S32);
        let bytes = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
        Ok(self.module.push_tensor(element, ElementType::S32, bytes))
    }

    /// Whether the attributes of an operation are used as encoded. VHLO encodes every attribute; `sdy` and `builtin`
    /// operations have none with a default.
    fn is_versioned(&self, name: StringId) -> bool {
        let name = &self.module.strings[name];
        [&b"vhlo."[..], b"sdy.", b"builtin."].iter().any(|dialect| name.starts_with(dialect))
    }

    /// Converts the attributes of a StableHLO operation to the form of VHLO: dense arrays become tensors, compound
    /// attributes are split into their parts, and missing attributes get their default values.
    fn normalized(&mut self, offset: usize, name: StringId, mut attributes: Attributes) -> Result<Attributes> {
        for (_, value) in &mut attributes {
            let Attribute::DenseArray { element, bytes } = &self.module.attributes[*value] else { continue };
            if let Some(&known) = self.tensors.get(value) {
                *value = known;
            } else if let Type::Element(ty) = self.module.types[*element] {
                let (element, bytes) = (*element, bytes.clone());
                let tensor = self.module.push_tensor(element, ty, bytes);
                self.tensors.insert(*value, tensor);
                *value = tensor;
            }
        }
        let full = self.module.text(name).into_owned();
        let own = full.split_once('.').map_or(&*full, |(_, own)| own);
        let normalized = text::normalized(self.module, own, attributes);
        let normalized = normalized.map_err(|expected| {
            Error::invalid_argument(format!("bytecode, byte {offset}: expected {expected} in {full}"))
        })?;
        Ok(normalized.into())
    }

    fn unknown_operation(&self, offset: usize, name: StringId) -> Error {
        let version = self.module.version.map_or(String::new(), |version| format!(", written for VHLO {version},"));
        Error::unimplemented(format!(
            "bytecode, byte {offset}: operation {}{version} is unknown here",
            self.module.text(name)
        ))
    }

    /// Starts to read the regions of an operation.
    fn regions(&mut self, ir: &mut Reader<'a>, op: OpId) -> Result<()> {
        let (offset, (count, is_isolated)) = (ir.offset(), ir.flagged()?);
        let regions = ir.checked_count(count, offset)?;
        let mut after = None;
        if is_isolated && self.version >= REGION_SECTIONS {
            let (offset, header) = (ir.offset(), ir.byte()?);
            if usize::from(header) != Section::Ir as usize {
                return Err(ir.error_at(offset, "isolated regions have no section of their own"));
            }
            let length = ir.count()?;
            let section = ir.part(length, "IR")?;
            after = Some(std::mem::replace(ir, section));
        }
        // Value numbers continue after those of the enclosing region, which include the values that it has yet to
        // define.
        let level = self.level();
        let outer = level.first.checked_add(level.count);
        let first = if is_isolated { Some(0) } else { outer };
        let first = first.ok_or_else(|| ir.error_at(offset, "the regions have too many values"))?;
        self.stack.push(Level {
            region: RegionId::from_index(0),
            block: None,
            operations: 0,
            blocks: 0,
            regions,
            op: Some(op),
            is_isolated,
            after,
            first,
            count: 0,
            values: Vec::new(),
        });
        self.end_region(ir)
    }

    /// Ends the current region; starts the operation's next region or returns to the enclosing one.
    fn end_region(&mut self, ir: &mut Reader<'a>) -> Result<()> {
        let level = self.level();
        let (defined, count) = (level.values.len() as u64, level.count);
        if defined != count {
            return Err(ir.error(format!("the region defines {defined} of its {count} values")));
        }
        if level.regions == 0 {
            if let Some(after) = level.after.take() {
                ir.finish("the regions")?;
                *ir = after;
            }
            self.stack.pop();
            return Ok(());
        }
        level.regions -= 1;
        level.values = Vec::new();
        level.count = 0;
        level.block = None;
        let op = level.op;
        let region = self.module.regions.push(Default::default());
        if let Some(op) = op {
            self.module.operations[op].regions.push(region);
        }
        let blocks = ir.count()?;
        let level = self.level();
        (level.region, level.blocks) = (region, blocks);
        if blocks > 0 {
            let (offset, count) = (ir.offset(), ir.varint()?);
            let count = ir.checked_count(count, offset)?;
            self.module.values.reserve(count);
            let level = self.level();
            (level.count, level.values) = (count as u64, Vec::with_capacity(count));
        }
        Ok(())
    }
}

/// Skips the use-list orders of `values` values. They fix the order of uses in memory, which nothing here depends on.
fn use_lists(r: &mut Reader<'_>, values: usize) -> Result<()> {
    let entries = if values > 1 { r.count()? } else { 1 };
    for _ in 0..entries {
        if values > 1 {
            r.varint()?;
        }
        let (offset, (count, _)) = (r.offset(), r.flagged()?);
        for _ in 0..r.checked_count(count, offset)? {
            r.varint()?;
        }
    }
    Ok(())
}
