//! Index types of the tables of a module.

use xla_hlo::entity_id;

entity_id! {
    /// String of a [`Module`].
    StringId, "string"
}

entity_id! {
    /// Type of a [`Module`](super::Module).
    TypeId, "type"
}

entity_id! {
    /// Attribute of a [`Module`](super::Module).
    AttrId, "attr"
}

entity_id! {
    /// Operation of a [`Module`](super::Module).
    OpId, "op"
}

entity_id! {
    /// Region of a [`Module`](super::Module).
    RegionId, "region"
}

entity_id! {
    /// Block of a [`Module`](super::Module).
    BlockId, "block"
}

entity_id! {
    /// Value of a [`Module`](super::Module).
    ValueId, "%"
}

/// Name, either a string or a string attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Plain string.
    String(StringId),
    /// String attribute.
    Attribute(AttrId),
}
