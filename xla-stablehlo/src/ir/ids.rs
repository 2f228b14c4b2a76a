//! Ids of the tables of a module.

use xla_hlo::entity_id;

entity_id! {
    /// A string of a [`Module`].
    StringId, "string"
}

entity_id! {
    /// A type of a [`Module`](super::Module).
    TypeId, "type"
}

entity_id! {
    /// An attribute of a [`Module`](super::Module).
    AttrId, "attr"
}

entity_id! {
    /// An operation of a [`Module`](super::Module).
    OpId, "op"
}

entity_id! {
    /// A region of a [`Module`](super::Module).
    RegionId, "region"
}

entity_id! {
    /// A block of a [`Module`](super::Module).
    BlockId, "block"
}

entity_id! {
    /// A value of a [`Module`](super::Module).
    ValueId, "%"
}

/// A name that is a string of its own, or a string attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A string.
    String(StringId),
    /// A string attribute.
    Attribute(AttrId),
}
