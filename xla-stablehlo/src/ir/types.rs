//! Types of values and attributes: elements, tensors, functions and others.

use xla_hlo::ElementType;

use super::ids::{AttrId, TypeId};

/// Type. The builtin, VHLO and StableHLO spellings of a type have one representation.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Element type of HLO, except complex ones, which are [`Type::Complex`]. MLIR's signless integers are signed, and
    /// `i1` is `pred`.
    Element(ElementType),
    /// Complex numbers with parts of an element type.
    Complex(TypeId),
    /// MLIR's `index` type, which no StableHLO value has.
    Index,
    /// MLIR's `none` type, which marks an absent attribute.
    None,
    /// Token, which orders side effects.
    Token,
    /// Function type.
    Function {
        /// Types of the arguments.
        inputs: Vec<TypeId>,
        /// Types of the results.
        results: Vec<TypeId>,
    },
    /// Tensor.
    Tensor {
        /// Extents; `None` for a dynamic one.
        dims: Vec<Option<u64>>,
        /// Type of the elements.
        element: TypeId,
        /// Bounds of the dynamic dimensions.
        encoding: Option<AttrId>,
    },
    /// Tensor of unknown rank.
    UnrankedTensor(TypeId),
    /// Array in separate memory that operations may write to.
    Buffer {
        /// Extents; `None` for a dynamic one.
        dims: Vec<Option<u64>>,
        /// Type of the elements.
        element: TypeId,
    },
    /// Tuple of values.
    Tuple(Vec<TypeId>),
    /// Results of an asynchronous operation.
    Future(Vec<TypeId>),
    /// Type without a counterpart in HLO, by its name.
    Foreign(&'static str),
    /// Type of a newer version, by its code in the dialect.
    Unknown(u64),
    /// Type of a dialect that is not decoded, stored as text.
    Text,
}

impl Type {
    /// Returns the types that this one refers to.
    pub fn types(&self) -> Vec<TypeId> {
        match self {
            Type::Complex(element)
            | Type::UnrankedTensor(element)
            | Type::Tensor { element, .. }
            | Type::Buffer { element, .. } => vec![*element],
            Type::Function { inputs, results } => [&inputs[..], results].concat(),
            Type::Tuple(types) | Type::Future(types) => types.clone(),
            Type::Element(_)
            | Type::Index
            | Type::None
            | Type::Token
            | Type::Foreign(_)
            | Type::Unknown(_)
            | Type::Text => Vec::new(),
        }
    }

    /// Returns the attribute that this type contains.
    pub fn attribute(&self) -> Option<AttrId> {
        match self {
            Type::Tensor { encoding, .. } => *encoding,
            _ => None,
        }
    }
}
