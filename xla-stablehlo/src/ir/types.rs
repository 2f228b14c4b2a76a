//! Types: elements, tensors, functions and what else values may be.

use xla_hlo::ElementType;

use super::ids::{AttrId, TypeId};

/// A type. Builtin, VHLO and StableHLO spellings of one type are the same here.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// An element type of HLO; complex ones are [`Type::Complex`]. MLIR's signless integers are signed, `i1` is
    /// `pred`.
    Element(ElementType),
    /// Complex numbers of an element type.
    Complex(TypeId),
    /// An index of MLIR, which no value of StableHLO has.
    Index,
    /// No type: an attribute that is absent.
    None,
    /// Orders effects.
    Token,
    /// A function.
    Function {
        /// Types of the arguments.
        inputs: Vec<TypeId>,
        /// Types of the results.
        results: Vec<TypeId>,
    },
    /// An array.
    Tensor {
        /// Extents; `None` for a dynamic one.
        dims: Vec<Option<u64>>,
        /// Type of the elements.
        element: TypeId,
        /// Bounds of dynamic dimensions.
        encoding: Option<AttrId>,
    },
    /// An array of unknown rank.
    UnrankedTensor(TypeId),
    /// An array in memory of its own, which operations may write to.
    Buffer {
        /// Extents; `None` for a dynamic one.
        dims: Vec<Option<u64>>,
        /// Type of the elements.
        element: TypeId,
    },
    /// Values put together.
    Tuple(Vec<TypeId>),
    /// Results of an asynchronous operation.
    Future(Vec<TypeId>),
    /// A type that has no counterpart in HLO, by its name.
    Foreign(&'static str),
    /// A type of a newer version, by the dialect's code for it.
    Unknown(u64),
    /// A type that is stored as text.
    Text,
}

impl Type {
    /// Types that this one is made of.
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

    /// Attribute that this type contains.
    pub fn attribute(&self) -> Option<AttrId> {
        match self {
            Type::Tensor { encoding, .. } => *encoding,
            _ => None,
        }
    }
}
