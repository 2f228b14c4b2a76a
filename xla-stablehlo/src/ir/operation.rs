//! Operations with their regions, blocks and values.

use smallvec::SmallVec;

use super::ids::{AttrId, BlockId, OpId, RegionId, StringId, TypeId, ValueId};

/// Short list that is stored inline.
pub type Few<T> = SmallVec<[T; 4]>;

/// Operation with its operands, results, attributes and regions.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Name with the dialect, such as `vhlo.add_v1`.
    pub name: StringId,
    /// Operands.
    pub operands: Few<ValueId>,
    /// Results.
    pub results: Few<ValueId>,
    /// Inherent and discardable attributes, sorted by name.
    pub attributes: SmallVec<[(StringId, AttrId); 2]>,
    /// Regions.
    pub regions: Few<RegionId>,
    /// Source location.
    pub location: Option<AttrId>,
    /// Offset of the operation in the file that it was read from, in bytes.
    pub offset: usize,
}

/// Region of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// Blocks of the region; regions of StableHLO have one.
    pub blocks: Vec<BlockId>,
}

/// Sequence of operations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Values that the enclosing operation passes to the block.
    pub arguments: Vec<ValueId>,
    /// Operations of the block; the last one is the terminator.
    pub operations: Vec<OpId>,
}

/// Result of an operation or argument of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Type of the value.
    pub ty: TypeId,
    /// Source location of a block argument.
    pub location: Option<AttrId>,
}
