//! Operations with their regions, blocks and values.

use smallvec::SmallVec;

use super::ids::{AttrId, BlockId, OpId, RegionId, StringId, TypeId, ValueId};

/// A short list that lies in the operation itself.
pub type Few<T> = SmallVec<[T; 4]>;

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Name with the dialect: `vhlo.add_v1`.
    pub name: StringId,
    /// Operands.
    pub operands: Few<ValueId>,
    /// Results.
    pub results: Few<ValueId>,
    /// Attributes in the order of their names, inherent and discardable ones.
    pub attributes: SmallVec<[(StringId, AttrId); 2]>,
    /// Regions.
    pub regions: Few<RegionId>,
    /// Place in the source.
    pub location: Option<AttrId>,
    /// Place in the file: byte of bytecode.
    pub offset: usize,
}

/// A region of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// Its blocks; StableHLO's regions have one.
    pub blocks: Vec<BlockId>,
}

/// Operations that run one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Values that the region's operation provides.
    pub arguments: Vec<ValueId>,
    /// The operations; the last one is the terminator.
    pub operations: Vec<OpId>,
}

/// A result of an operation or an argument of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its type.
    pub ty: TypeId,
    /// Place in the source, of arguments.
    pub location: Option<AttrId>,
}
