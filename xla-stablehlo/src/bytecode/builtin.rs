//! The `builtin` dialect: MLIR's own attributes and types, source locations and the module operation.

use xla_hlo::ElementType::{
    BF16, F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU, F16, F32, F64, Pred, S2, S4, S8, S16, S32, S64, U2, U4, U8, U16, U32, U64,
};
use xla_hlo::Result;
use xla_hlo::entity::Arena;

use super::numbers;
use super::reader::Reader;
use crate::ir::{Attribute, Location, Type, TypeId};

/// Decodes a `builtin` attribute.
pub(super) fn attribute(r: &mut Reader<'_>, types: &Arena<TypeId, Type>) -> Result<Attribute> {
    Ok(match r.varint()? {
        0 => Attribute::Array(r.attributes()?),
        1 => Attribute::Dictionary(r.list(|r| Ok((r.attribute()?, r.attribute()?)))?),
        2 => Attribute::String(r.string()?),
        3 => {
            let string = r.string()?;
            r.ty()?;
            Attribute::String(string)
        }
        4 => Attribute::Symbol(vec![r.attribute()?]),
        5 => {
            let root = r.attribute()?;
            Attribute::Symbol(std::iter::once(root).chain(r.attributes()?).collect())
        }
        6 => Attribute::Type(r.ty()?),
        7 => Attribute::Unit,
        8 => integer(r, types)?,
        9 => numbers::float(r, types)?,
        10 => Attribute::Location(Location::CallSite { callee: r.attribute()?, caller: r.attribute()? }),
        11 => {
            let file = r.attribute()?;
            Attribute::Location(Location::File { file, range: [r.line()?, r.line()?].into_iter().collect() })
        }
        12 => Attribute::Location(Location::Fused { locations: r.attributes()?.into(), metadata: None }),
        13 => {
            let locations = r.attributes()?.into();
            Attribute::Location(Location::Fused { locations, metadata: Some(r.attribute()?) })
        }
        14 => Attribute::Location(Location::Name { name: r.attribute()?, child: r.attribute()? }),
        15 => Attribute::Location(Location::Unknown),
        16 => Attribute::Foreign("dense_resource"),
        17 => {
            let element = r.ty()?;
            r.varint()?;
            Attribute::DenseArray { element, bytes: r.blob()?.into() }
        }
        18 => numbers::dense(r, types)?,
        19 => Attribute::Foreign("dense of strings"),
        20 => Attribute::Foreign("sparse"),
        21 => Attribute::Foreign("distinct"),
        22 => {
            let file = r.attribute()?;
            Attribute::Location(Location::File { file, range: r.list(Reader::line)?.into() })
        }
        code => Attribute::Unknown(code),
    })
}

/// Decodes an integer attribute. JAX writes integers of at most 64 bits; wider ones have no counterpart in HLO and
/// become [`Attribute::Foreign`].
fn integer(r: &mut Reader<'_>, types: &Arena<TypeId, Type>) -> Result<Attribute> {
    match types[r.clone().ty()?] {
        Type::Foreign(_) => Ok(Attribute::Foreign("wide integer")),
        Type::Element(Pred) => match numbers::integer(r, types)? {
            Attribute::Integer { value, .. } => Ok(Attribute::Bool(value != 0)),
            other => Ok(other),
        },
        _ => numbers::integer(r, types),
    }
}

/// Decodes a `builtin` type.
pub(super) fn ty(r: &mut Reader<'_>) -> Result<Type> {
    let tensor = |r: &mut Reader<'_>, encoding| Ok(Type::Tensor { dims: r.dims()?, element: r.ty()?, encoding });
    Ok(match r.varint()? {
        0 => {
            let code = r.varint()?;
            integer_type(code >> 2, code & 3)
        }
        1 => Type::Index,
        2 => Type::Function { inputs: r.types()?, results: r.types()? },
        3 => Type::Element(BF16),
        4 => Type::Element(F16),
        5 => Type::Element(F32),
        6 => Type::Element(F64),
        7 => Type::Foreign("f80"),
        8 => Type::Foreign("f128"),
        9 => Type::Complex(r.ty()?),
        10 => {
            let (dims, element) = (r.dims()?, r.ty()?);
            r.attribute()?;
            Type::Buffer { dims, element }
        }
        11 => {
            r.attribute()?;
            let (dims, element) = (r.dims()?, r.ty()?);
            r.attribute()?;
            Type::Buffer { dims, element }
        }
        12 => Type::None,
        13 => tensor(r, None)?,
        14 => {
            let encoding = r.attribute()?;
            tensor(r, Some(encoding))?
        }
        15 => Type::Tuple(r.types()?),
        18 => Type::UnrankedTensor(r.ty()?),
        16 => {
            r.ty()?;
            Type::Foreign("memref of unknown rank")
        }
        17 => {
            r.attribute()?;
            r.ty()?;
            Type::Foreign("memref of unknown rank")
        }
        19 => {
            r.dims()?;
            r.ty()?;
            Type::Foreign("vector")
        }
        20 => {
            r.list(Reader::varint)?;
            r.dims()?;
            r.ty()?;
            Type::Foreign("vector")
        }
        21 => Type::Foreign("tf32"),
        22 => Type::Element(F8E5M2),
        23 => Type::Element(F8E4M3),
        24 => Type::Element(F8E4M3FN),
        25 => Type::Element(F8E5M2FNUZ),
        26 => Type::Element(F8E4M3FNUZ),
        27 => Type::Element(F8E4M3B11FNUZ),
        28 => Type::Element(F8E3M4),
        29 => Type::Element(F4E2M1FN),
        30 => Type::Element(F6E2M3FN),
        31 => Type::Element(F6E3M2FN),
        32 => Type::Element(F8E8M0FNU),
        code => Type::Unknown(code),
    })
}

/// Returns the type for an integer of `width` bits. A `signedness` of 0 means signless, which reads as signed.
fn integer_type(width: u64, signedness: u64) -> Type {
    let (signed, unsigned) = match width {
        1 => return Type::Element(Pred),
        2 => (S2, U2),
        4 => (S4, U4),
        8 => (S8, U8),
        16 => (S16, U16),
        32 => (S32, U32),
        64 => (S64, U64),
        _ => return Type::Foreign("integer of another width"),
    };
    Type::Element(if signedness == 2 { unsigned } else { signed })
}
