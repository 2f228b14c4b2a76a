//! Attributes: constants of operations, functions and modules, and locations.

use xla_hlo::ElementType;

use super::ids::{AttrId, StringId, TypeId};
use super::operation::Few;
use super::sharding::Sharding;

/// An attribute. Builtin and VHLO spellings of one attribute are the same here.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A flag that is set by being there.
    Unit,
    /// A truth value.
    Bool(bool),
    /// An integer of at most 64 bits, extended by the sign of its type.
    Integer {
        /// An integer type, or the index.
        ty: TypeId,
        /// The value.
        value: i64,
    },
    /// A float of at most 64 bits.
    Float {
        /// Type of the float.
        ty: TypeId,
        /// The bits in that type.
        bits: u64,
    },
    /// Text, or any bytes.
    String(StringId),
    /// A reference to a symbol: names from the outermost on.
    Symbol(Vec<AttrId>),
    /// A type.
    Type(TypeId),
    /// A list.
    Array(Vec<AttrId>),
    /// Names, which are strings, with values.
    Dictionary(Vec<(AttrId, AttrId)>),
    /// Elements of a tensor in row-major order, each in whole bytes; one element where all are equal. Elements of one
    /// bit are packed, the first in the lowest bit.
    Dense {
        /// Type of the tensor.
        ty: TypeId,
        /// The elements.
        bytes: Box<[u8]>,
    },
    /// Numbers in a list.
    DenseArray {
        /// Type of the numbers.
        element: TypeId,
        /// The numbers, each in whole bytes.
        bytes: Box<[u8]>,
    },
    /// A place in the source.
    Location(Location),
    /// One of a few names.
    Enum(EnumKind, u32),
    /// Aliasing of a part of a custom call's result with a part of an operand.
    OutputOperandAlias {
        /// Path to the part of the result.
        output: Box<[i64]>,
        /// Number of the operand.
        operand: i32,
        /// Path to the part of the operand.
        operand_path: Box<[i64]>,
    },
    /// Bounds of the dynamic dimensions of a type, `i64::MIN` where there is none.
    TypeExtensions(Vec<i64>),
    /// Accuracy of a function's results.
    ResultAccuracy(Box<ResultAccuracy>),
    /// A sharding or a part of one.
    Sharding(Box<Sharding>),
    /// An attribute that has no counterpart in HLO, by its name.
    Foreign(&'static str),
    /// An attribute of a newer version, by the dialect's code for it.
    Unknown(u64),
    /// An attribute that is stored as text.
    Text,
}

/// Enumerations of StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnumKind {
    /// `EQ NE GE GT LE LT`.
    ComparisonDirection,
    /// `NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED`.
    ComparisonType,
    /// Versions 0 to 4 of the interface of custom calls.
    CustomCallApiVersion,
    /// `FFT IFFT RFFT IRFFT`.
    FftType,
    /// `DEFAULT HIGH HIGHEST`.
    Precision,
    /// `DEFAULT THREE_FRY PHILOX`.
    RngAlgorithm,
    /// `UNIFORM NORMAL`, from 1 on.
    RngDistribution,
    /// `TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT`.
    Transpose,
    /// `DEFAULT HIGHEST TOLERANCE`.
    ResultAccuracyMode,
}

/// Accuracy of a function's results.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultAccuracy {
    /// Absolute tolerance, as the bits of an `f64`.
    pub absolute: u64,
    /// Relative tolerance, as the bits of an `f64`.
    pub relative: u64,
    /// Units in the last place.
    pub ulps: i64,
    /// An [`EnumKind::ResultAccuracyMode`].
    pub mode: AttrId,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    /// Nothing is known.
    Unknown,
    /// A place in a file; lines and columns count from 1.
    File {
        /// Name of the file.
        file: AttrId,
        /// Line and column, and perhaps those of the end.
        range: Few<u32>,
    },
    /// A call.
    CallSite {
        /// Location in the called function.
        callee: AttrId,
        /// Location of the call.
        caller: AttrId,
    },
    /// Several locations, with metadata of whoever fused them.
    Fused {
        /// The locations.
        locations: Box<[AttrId]>,
        /// The metadata.
        metadata: Option<AttrId>,
    },
    /// A name, such as the path of JAX's scopes, at a location.
    Name {
        /// The name.
        name: AttrId,
        /// The location.
        child: AttrId,
    },
}

/// Extends elements that are narrower than a byte by their sign, which MLIR leaves out.
pub(crate) fn extend_signs(element: ElementType, bytes: &mut [u8]) {
    if element.is_integer() && element.is_signed() && element.bit_width() < 8 {
        let spare = 8 - element.bit_width();
        bytes.iter_mut().for_each(|byte| *byte = ((*byte as i8) << spare >> spare) as u8);
    }
}

impl Attribute {
    /// Attributes that this one is made of.
    pub fn attributes(&self) -> Vec<AttrId> {
        match self {
            Attribute::Symbol(list) | Attribute::Array(list) => list.clone(),
            Attribute::Dictionary(entries) => entries.iter().flat_map(|&(name, value)| [name, value]).collect(),
            Attribute::ResultAccuracy(accuracy) => vec![accuracy.mode],
            Attribute::Location(location) => location.attributes(),
            Attribute::Sharding(sharding) => sharding.attributes(),
            _ => Vec::new(),
        }
    }

    /// The sharding that this attribute is.
    pub fn sharding(&self) -> Option<&Sharding> {
        match self {
            Attribute::Sharding(sharding) => Some(sharding),
            _ => None,
        }
    }

    /// Type that this attribute contains.
    pub fn ty(&self) -> Option<TypeId> {
        match self {
            Attribute::Integer { ty, .. }
            | Attribute::Float { ty, .. }
            | Attribute::Dense { ty, .. }
            | Attribute::DenseArray { element: ty, .. }
            | Attribute::Type(ty) => Some(*ty),
            _ => None,
        }
    }
}

impl From<Sharding> for Attribute {
    fn from(sharding: Sharding) -> Attribute {
        Attribute::Sharding(Box::new(sharding))
    }
}

impl Location {
    fn attributes(&self) -> Vec<AttrId> {
        match self {
            Location::Unknown => Vec::new(),
            Location::File { file, .. } => vec![*file],
            Location::CallSite { callee, caller } => vec![*callee, *caller],
            Location::Fused { locations, metadata } => locations.iter().copied().chain(*metadata).collect(),
            Location::Name { name, child } => vec![*name, *child],
        }
    }
}

impl EnumKind {
    /// Names of the values, from 0 on.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            EnumKind::ComparisonDirection => &["EQ", "NE", "GE", "GT", "LE", "LT"],
            EnumKind::ComparisonType => &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"],
            EnumKind::CustomCallApiVersion => &[
                "API_VERSION_UNSPECIFIED",
                "API_VERSION_ORIGINAL",
                "API_VERSION_STATUS_RETURNING",
                "API_VERSION_STATUS_RETURNING_UNIFIED",
                "API_VERSION_TYPED_FFI",
            ],
            EnumKind::FftType => &["FFT", "IFFT", "RFFT", "IRFFT"],
            EnumKind::Precision => &["DEFAULT", "HIGH", "HIGHEST"],
            EnumKind::RngAlgorithm => &["DEFAULT", "THREE_FRY", "PHILOX"],
            EnumKind::RngDistribution => &["", "UNIFORM", "NORMAL"],
            EnumKind::Transpose => &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"],
            EnumKind::ResultAccuracyMode => &["DEFAULT", "HIGHEST", "TOLERANCE"],
        }
    }
}
