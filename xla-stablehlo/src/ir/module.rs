//! The tables of a program, and their invariants.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use xla_hlo::entity::{Arena, EntityId};
use xla_hlo::{ElementType, Error, Result};

use super::attribute::Attribute;
use super::ids::{AttrId, BlockId, OpId, RegionId, StringId, TypeId, ValueId};
use super::operation::{Block, Operation, Region, Value};
use super::types::Type;

/// Version of VHLO, the versioned form of StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Offsets of the lines of a text, for line numbers in messages.
#[derive(Clone, Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// Finds the lines of a text.
    pub fn of(text: &str) -> Lines {
        Lines(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }
}

/// StableHLO program.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// VHLO version that the program was written for, if its file records one.
    pub version: Option<Version>,
    /// Strings: names and the contents of string attributes.
    pub strings: Arena<StringId, Box<[u8]>>,
    /// Types of values and attributes.
    pub types: Arena<TypeId, Type>,
    /// Attributes of operations and types.
    pub attributes: Arena<AttrId, Attribute>,
    /// Operations of all blocks.
    pub operations: Arena<OpId, Operation>,
    /// Regions of all operations.
    pub regions: Arena<RegionId, Region>,
    /// Blocks of all regions.
    pub blocks: Arena<BlockId, Block>,
    /// Values that operations and blocks define.
    pub values: Arena<ValueId, Value>,
    /// Top-level operation, a `builtin.module`, which contains all others.
    pub top: Option<OpId>,
    /// Lines of the source text; `None` for bytecode.
    pub lines: Option<Lines>,
    /// Strings that the reader interned.
    interned: HashMap<Box<[u8]>, StringId>,
    /// Element types that the reader added, by their HLO names.
    elements: HashMap<&'static str, TypeId>,
}

impl Module {
    /// Returns the id of an element type; adds the type if needed.
    pub fn element(&mut self, ty: ElementType) -> TypeId {
        let types = &mut self.types;
        *self.elements.entry(ty.name()).or_insert_with(|| types.push(Type::Element(ty)))
    }

    /// Adds a 64-bit integer attribute.
    pub fn push_integer(&mut self, value: i64) -> AttrId {
        let ty = self.element(ElementType::S64);
        self.attributes.push(Attribute::Integer { ty, value })
    }

    /// Adds 64-bit integers as a tensor of rank 1.
    pub fn push_integers(&mut self, values: &[i64]) -> AttrId {
        let element = self.element(ElementType::S64);
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.push_tensor(element, ElementType::S64, bytes)
    }

    /// Adds a tensor of rank 1 with these bytes. `element` is the id of the element type `ty`.
    pub fn push_tensor(&mut self, element: TypeId, ty: ElementType, bytes: Box<[u8]>) -> AttrId {
        let count = (bytes.len() / ty.byte_width()) as u64;
        let ty = self.types.push(Type::Tensor { dims: vec![Some(count)], element, encoding: None });
        self.attributes.push(Attribute::Dense { ty, bytes })
    }

    /// Interns a string: equal bytes get the same id.
    pub fn intern(&mut self, bytes: &[u8]) -> StringId {
        if let Some(&known) = self.interned.get(bytes) {
            return known;
        }
        let id = self.strings.push(bytes.into());
        self.interned.insert(bytes.into(), id);
        id
    }

    /// Returns a string as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self, id: StringId) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.strings[id])
    }

    /// Returns the text of a string attribute.
    pub fn string_attribute(&self, id: AttrId) -> Option<Cow<'_, str>> {
        match self.attributes[id] {
            Attribute::String(string) => Some(self.text(string)),
            _ => None,
        }
    }

    /// Returns an operation's attribute with this name.
    pub fn attribute(&self, op: OpId, name: &str) -> Option<AttrId> {
        let attributes = &self.operations[op].attributes;
        attributes.iter().find(|(known, _)| *self.strings[*known] == *name.as_bytes()).map(|&(_, value)| value)
    }

    /// Describes the position of an operation in its file: `byte 123` of bytecode, `line 3` of text.
    pub fn place(&self, op: OpId) -> String {
        let offset = self.operations[op].offset;
        match &self.lines {
            Some(Lines(starts)) => format!("line {}", starts.partition_point(|&start| start <= offset)),
            None => format!("byte {offset}"),
        }
    }

    /// Iterates over all operations in textual order, each one after the operation that contains it.
    pub fn walk(&self) -> impl Iterator<Item = OpId> + '_ {
        let mut stack: Vec<OpId> = self.top.into_iter().collect();
        std::iter::from_fn(move || {
            let next = stack.pop()?;
            let regions = self.operations[next].regions.iter();
            let inner = regions.flat_map(|&region| &self.regions[region].blocks);
            let first = stack.len();
            stack.extend(inner.flat_map(|&block| &self.blocks[block].operations));
            stack[first..].reverse();
            Some(next)
        })
    }

    /// Whether an operation is a function without a body, whose region has no block.
    pub fn is_declaration(&self, op: OpId) -> bool {
        let operation = &self.operations[op];
        matches!(&*self.strings[operation.name], b"func.func" | b"vhlo.func_v1")
            && matches!(operation.regions[..], [region] if self.regions[region].blocks.is_empty())
    }

    /// Checks that no attribute and no type contains itself, in linear time and without recursion.
    ///
    /// Errors: `Error::InvalidArgument` if one does.
    pub fn check_tables(&self) -> Result<()> {
        let attributes = self.attributes.len();
        let parts = |node: usize| -> Vec<usize> {
            if let Some(index) = node.checked_sub(attributes) {
                let ty = &self.types[TypeId::from_index(index)];
                let inner = ty.types().into_iter().map(|ty| attributes + ty.index());
                return inner.chain(ty.attribute().map(EntityId::index)).collect();
            }
            let attribute = &self.attributes[AttrId::from_index(node)];
            let inner = attribute.attributes().into_iter().map(EntityId::index);
            inner.chain(attribute.ty().map(|ty| attributes + ty.index())).collect()
        };
        let mut state = vec![Visit::New; attributes + self.types.len()];
        for start in 0..state.len() {
            let mut stack = vec![(start, None::<std::vec::IntoIter<usize>>)];
            while let Some((node, rest)) = stack.last_mut() {
                let node = *node;
                if rest.is_none() && state[node] == Visit::New {
                    state[node] = Visit::Open;
                    *rest = Some(parts(node).into_iter());
                }
                match rest.as_mut().and_then(Iterator::next) {
                    Some(part) if state[part] == Visit::Open => return Err(self.contains_itself(part)),
                    Some(part) if state[part] == Visit::New => stack.push((part, None)),
                    Some(_) => {}
                    None => {
                        state[node] = Visit::Done;
                        stack.pop();
                    }
                }
            }
        }
        Ok(())
    }

    fn contains_itself(&self, node: usize) -> Error {
        let attributes = self.attributes.len();
        let (what, number) = if node < attributes { ("attribute", node) } else { ("type", node - attributes) };
        Error::invalid_argument(format!("{what} {number} contains itself"))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    Open,
    Done,
}
