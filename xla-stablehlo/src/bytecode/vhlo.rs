//! VHLO: StableHLO with a version on every operation, attribute and type, which keeps old artifacts readable.

use xla_hlo::ElementType::{
    BF16, F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
    F8E8M0FNU, F16, F32, F64, Pred, S2, S4, S8, S16, S32, S64, U2, U4, U8, U16, U32, U64,
};
use xla_hlo::Result;
use xla_hlo::entity::Arena;

use super::numbers;
use super::reader::Reader;
use crate::ir::{Attribute, EnumKind, Name, ResultAccuracy, Sharding, Type, TypeId};

/// Decodes a VHLO type.
pub(super) fn ty(r: &mut Reader<'_>) -> Result<Type> {
    Ok(match r.varint()? {
        0 => Type::Element(Pred),
        1 => Type::Complex(r.ty()?),
        2 => Type::Element(BF16),
        3 => Type::Element(F16),
        4 => Type::Element(F32),
        5 => Type::Element(F64),
        6 => Type::Element(F8E4M3FN),
        7 => Type::Element(F8E5M2),
        8 => Type::Function { inputs: r.types()?, results: r.types()? },
        9 => Type::Index,
        10 => Type::Element(S4),
        11 => Type::Element(S8),
        12 => Type::Element(S16),
        13 => Type::Element(S32),
        14 => Type::Element(S64),
        15 => Type::Element(U4),
        16 => Type::Element(U8),
        17 => Type::Element(U16),
        18 => Type::Element(U32),
        19 => Type::Element(U64),
        20 => Type::Tensor { dims: r.dims()?, element: r.ty()?, encoding: None },
        21 => {
            let encoding = Some(r.attribute()?);
            Type::Tensor { dims: r.dims()?, element: r.ty()?, encoding }
        }
        22 => Type::Token,
        23 => Type::Tuple(r.types()?),
        24 => quantized(r)?,
        25 => Type::UnrankedTensor(r.ty()?),
        26 => Type::Foreign("witness"),
        27 => Type::Element(F8E4M3FNUZ),
        28 => Type::Element(F8E5M2FNUZ),
        29 => Type::Element(F8E4M3B11FNUZ),
        30 => quantized_per_axis(r)?,
        31 => Type::Element(S2),
        32 => Type::Element(U2),
        33 => Type::None,
        34 => Type::Foreign("tf32"),
        35 => Type::Element(F8E4M3),
        36 => Type::Element(F8E3M4),
        37 => Type::Element(F4E2M1FN),
        38 => Type::Element(F6E2M3FN),
        39 => Type::Element(F6E3M2FN),
        40 => Type::Element(F8E8M0FNU),
        41 => Type::Buffer { dims: r.dims()?, element: r.ty()? },
        42 => Type::Future(r.types()?),
        code => Type::Unknown(code),
    })
}

/// Skips a quantized type: flags, storage type, expressed type, scale, zero point, minimum and maximum stored value.
fn quantized(r: &mut Reader<'_>) -> Result<Type> {
    r.varint()?;
    for _ in 0..2 {
        r.ty()?;
    }
    numbers::float_bits(r, 64)?;
    for _ in 0..3 {
        r.signed()?;
    }
    Ok(Type::Foreign("quantized"))
}

/// Skips a type quantized per axis: flags, storage type, expressed type, dimension, minimum and maximum stored value,
/// scales, zero points.
fn quantized_per_axis(r: &mut Reader<'_>) -> Result<Type> {
    r.varint()?;
    for _ in 0..2 {
        r.ty()?;
    }
    r.varint()?;
    for _ in 0..2 {
        r.signed()?;
    }
    r.list(|r| numbers::float_bits(r, 64))?;
    r.list(Reader::signed)?;
    Ok(Type::Foreign("quantized per axis"))
}

/// Decodes a VHLO attribute.
pub(super) fn attribute(r: &mut Reader<'_>, types: &Arena<TypeId, Type>) -> Result<Attribute> {
    Ok(match r.varint()? {
        1 => Attribute::Array(r.attributes()?),
        2 => Attribute::Bool(r.varint()? != 0),
        3 => numbers::enumerator(r, EnumKind::ComparisonDirection)?,
        4 => numbers::enumerator(r, EnumKind::ComparisonType)?,
        5 => numbers::enumerator(r, EnumKind::CustomCallApiVersion)?,
        6 => Attribute::Dictionary(r.list(|r| Ok((r.attribute()?, r.attribute()?)))?),
        7 => numbers::enumerator(r, EnumKind::FftType)?,
        8 => numbers::float(r, types)?,
        9 => numbers::integer(r, types)?,
        10 => numbers::output_operand_alias(r)?,
        11 => numbers::enumerator(r, EnumKind::Precision)?,
        12 => numbers::enumerator(r, EnumKind::RngAlgorithm)?,
        13 => numbers::enumerator(r, EnumKind::RngDistribution)?,
        14 => Attribute::String(r.string()?),
        15 => numbers::dense(r, types)?,
        16 => numbers::enumerator(r, EnumKind::Transpose)?,
        17 => Attribute::Type(r.ty()?),
        18 => Attribute::TypeExtensions(r.list(Reader::signed)?),
        19 => numbers::enumerator(r, EnumKind::ResultAccuracyMode)?,
        20 => {
            let (absolute, relative) = (numbers::float_bits(r, 64)?, numbers::float_bits(r, 64)?);
            let (ulps, mode) = (r.signed()?, r.attribute()?);
            Attribute::ResultAccuracy(Box::new(ResultAccuracy { absolute, relative, ulps, mode }))
        }
        21 => sharding(Sharding::SubAxis { pre_size: r.signed()?, size: r.signed()? }),
        22 => {
            let name = Name::Attribute(r.attribute()?);
            let sub_axis = if r.varint()? != 0 { Some(r.attribute()?) } else { None };
            sharding(Sharding::AxisRef { name, sub_axis })
        }
        23 => sharding(Sharding::ReplicaGroups { mesh: r.attribute()?, axes: r.attribute()? }),
        24 => {
            let name = Name::Attribute(r.attribute()?);
            sharding(Sharding::MeshAxis { name, size: r.signed()? })
        }
        25 => {
            let axes = r.attribute()?;
            sharding(Sharding::MeshOfAttributes { axes, device_ids: r.optional_attribute()? })
        }
        code => Attribute::Unknown(code),
    })
}

fn sharding(sharding: Sharding) -> Attribute {
    Attribute::from(sharding)
}
