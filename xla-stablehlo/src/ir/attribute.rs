//! Attributes: constants of operations, functions and modules, and source locations.

use xla_hlo::ElementType;

use super::ids::{AttrId, StringId, TypeId};
use super::operation::Few;
use super::sharding::Sharding;

/// Attribute. The builtin and VHLO spellings of an attribute have one representation.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// Flag that is set by its presence.
    Unit,
    /// Boolean.
    Bool(bool),
    /// Integer of at most 64 bits, extended according to the signedness of its type.
    Integer {
        /// Integer type or index type.
        ty: TypeId,
        /// Value of the integer.
        value: i64,
    },
    /// Float of at most 64 bits.
    Float {
        /// Type of the float.
        ty: TypeId,
        /// Bit pattern in that type.
        bits: u64,
    },
    /// String of text or arbitrary bytes.
    String(StringId),
    /// Reference to a symbol, as the names from the outermost symbol inward.
    Symbol(Vec<AttrId>),
    /// Type used as an attribute.
    Type(TypeId),
    /// List of attributes.
    Array(Vec<AttrId>),
    /// Dictionary of string attributes and their values.
    Dictionary(Vec<(AttrId, AttrId)>),
    /// Elements of a tensor in row-major order, each in whole bytes; a single element for a splat. Elements of one bit
    /// are packed, the first in the least significant bit.
    Dense {
        /// Type of the tensor.
        ty: TypeId,
        /// Bytes of the elements.
        bytes: Box<[u8]>,
    },
    /// Array of numbers.
    DenseArray {
        /// Type of the numbers.
        element: TypeId,
        /// Bytes of the numbers, each in whole bytes.
        bytes: Box<[u8]>,
    },
    /// Source location.
    Location(Location),
    /// Enumerator, as its number in the enumeration.
    Enum(EnumKind, u32),
    /// Alias between a part of a custom call's result and a part of one of its operands.
    OutputOperandAlias {
        /// Path to the part of the result.
        output: Box<[i64]>,
        /// Number of the operand.
        operand: i32,
        /// Path to the part of the operand.
        operand_path: Box<[i64]>,
    },
    /// Bounds of the dynamic dimensions of a type; `i64::MIN` for a dimension without a bound.
    TypeExtensions(Vec<i64>),
    /// Required accuracy of a function's results.
    ResultAccuracy(Box<ResultAccuracy>),
    /// Sharding or a part of one.
    Sharding(Box<Sharding>),
    /// Attribute without a counterpart in HLO, by its name.
    Foreign(&'static str),
    /// Attribute of a newer version, by its code in the dialect.
    Unknown(u64),
    /// Attribute of a dialect that is not decoded, stored as text.
    Text,
}

/// Enumerations of StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnumKind {
    /// `EQ NE GE GT LE LT`.
    ComparisonDirection,
    /// `NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED`.
    ComparisonType,
    /// Versions 0 to 4 of the custom call API.
    CustomCallApiVersion,
    /// `FFT IFFT RFFT IRFFT`.
    FftType,
    /// `DEFAULT HIGH HIGHEST`.
    Precision,
    /// `DEFAULT THREE_FRY PHILOX`.
    RngAlgorithm,
    /// `UNIFORM NORMAL`, numbered from 1.
    RngDistribution,
    /// `TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT`.
    Transpose,
    /// `DEFAULT HIGHEST TOLERANCE`.
    ResultAccuracyMode,
}

/// Required accuracy of a function's results.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultAccuracy {
    /// Absolute tolerance, as the bits of an `f64`.
    pub absolute: u64,
    /// Relative tolerance, as the bits of an `f64`.
    pub relative: u64,
    /// Units in the last place.
    pub ulps: i64,
    /// Mode, an enumerator of [`EnumKind::ResultAccuracyMode`].
    pub mode: AttrId,
}

/// Source location.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    /// Unknown location.
    Unknown,
    /// Position in a file; lines and columns count from 1.
    File {
        /// Name of the file.
        file: AttrId,
        /// Line and column, optionally followed by those of the end.
        range: Few<u32>,
    },
    /// Call site.
    CallSite {
        /// Location in the called function.
        callee: AttrId,
        /// Location of the call.
        caller: AttrId,
    },
    /// Several locations, with the metadata of the pass that fused them.
    Fused {
        /// Fused locations.
        locations: Box<[AttrId]>,
        /// Metadata of the fusion.
        metadata: Option<AttrId>,
    },
    /// Name at a location, such as the path of JAX's scopes.
    Name {
        /// Name, a string attribute.
        name: AttrId,
        /// Location of the named entity.
        child: AttrId,
    },
}

/// Sign-extends elements that are narrower than a byte. MLIR stores their upper bits as zeros.
pub(crate) fn extend_signs(element: ElementType, bytes: &mut [u8]) {
    if element.is_integer() && element.is_signed() && element.bit_width() < 8 {
        let spare = 8 - element.bit_width();
        bytes.iter_mut().for_each(|byte| *byte = ((*byte as i8) << spare >> spare) as u8);
    }
}

impl Attribute {
    /// Returns the attributes that this one refers to.
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

    /// Returns the sharding that this attribute holds.
    pub fn sharding(&self) -> Option<&Sharding> {
        match self {
            Attribute::Sharding(sharding) => Some(sharding),
            _ => None,
        }
    }

    /// Returns the type that this attribute contains.
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
    /// Returns the names of the enumerators, numbered from 0.
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
