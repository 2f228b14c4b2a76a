//! The unversioned dialects StableHLO and CHLO, as MLIR writes them. One of their compound attributes corresponds to
//! several attributes of VHLO.

use xla_hlo::Result;

use super::numbers;
use super::reader::Reader;
use crate::ir::{AttrId, Attribute, EnumKind, Module, Name, ResultAccuracy, Sharding, Type};

/// Decodes a StableHLO type. CHLO has no types.
pub(super) fn ty(r: &mut Reader<'_>) -> Result<Type> {
    Ok(match r.varint()? {
        0 => Type::Token,
        1 => Type::Future(r.types()?),
        code => Type::Unknown(code),
    })
}

/// Decodes a StableHLO attribute. The parts of compound attributes are added to the tables of `module`.
pub(super) fn attribute(r: &mut Reader<'_>, module: &mut Module) -> Result<Attribute> {
    Ok(match r.varint()? {
        1 => integers(r, module, &["channel_id", "channel_type"])?,
        2 => numbers::enumerator(r, EnumKind::ComparisonDirection)?,
        3 => numbers::enumerator(r, EnumKind::ComparisonType)?,
        4 => convolution(r, module)?,
        5 => lists(
            r,
            module,
            &[
                "lhs_batching_dimensions",
                "rhs_batching_dimensions",
                "lhs_contracting_dimensions",
                "rhs_contracting_dimensions",
            ],
        )?,
        6 => numbers::enumerator(r, EnumKind::FftType)?,
        7 => indexed(
            r,
            module,
            [
                "offset_dims",
                "collapsed_slice_dims",
                "operand_batching_dims",
                "start_indices_batching_dims",
                "start_index_map",
            ],
        )?,
        8 => numbers::enumerator(r, EnumKind::Precision)?,
        9 => numbers::enumerator(r, EnumKind::RngAlgorithm)?,
        10 => numbers::enumerator(r, EnumKind::RngDistribution)?,
        11 => indexed(
            r,
            module,
            [
                "update_window_dims",
                "inserted_window_dims",
                "input_batching_dims",
                "scatter_indices_batching_dims",
                "scatter_dims_to_operand_dims",
            ],
        )?,
        12 => numbers::enumerator(r, EnumKind::Transpose)?,
        13 => Attribute::TypeExtensions(r.list(Reader::signed)?),
        14 => numbers::output_operand_alias(r)?,
        15 => dot_algorithm(r, module)?,
        16 => numbers::enumerator(r, EnumKind::ResultAccuracyMode)?,
        17 => {
            let (absolute, relative) = (numbers::float_bits(r, 64)?, numbers::float_bits(r, 64)?);
            let (ulps, mode) = (r.signed()?, r.attribute()?);
            Attribute::ResultAccuracy(Box::new(ResultAccuracy { absolute, relative, ulps, mode }))
        }
        18 => {
            let (mesh, axes) = (r.attribute()?, r.attributes()?);
            let axes = module.attributes.push(Attribute::Array(axes));
            Attribute::from(Sharding::ReplicaGroups { mesh, axes })
        }
        19 => Attribute::from(Sharding::SubAxis { pre_size: r.signed()?, size: r.signed()? }),
        20 => {
            let name = Name::String(r.string()?);
            let sub_axis = if r.boolean()? { Some(r.attribute()?) } else { None };
            Attribute::from(Sharding::AxisRef { name, sub_axis })
        }
        21 => Attribute::from(Sharding::MeshAxis { name: Name::String(r.string()?), size: r.signed()? }),
        22 => {
            let axes = r.attribute()?;
            let device_ids = if r.boolean()? { Some(r.attribute()?) } else { None };
            Attribute::from(Sharding::MeshOfAttributes { axes, device_ids })
        }
        code => Attribute::Unknown(code),
    })
}

/// Decodes a CHLO attribute.
pub(super) fn chlo_attribute(r: &mut Reader<'_>) -> Result<Attribute> {
    Ok(match r.varint()? {
        0 => numbers::enumerator(r, EnumKind::ComparisonDirection)?,
        1 => numbers::enumerator(r, EnumKind::ComparisonType)?,
        code => Attribute::Unknown(code),
    })
}

/// Parts of a compound attribute, by name.
struct Parts<'m> {
    module: &'m mut Module,
    entries: Vec<(AttrId, AttrId)>,
}

impl Parts<'_> {
    fn new(module: &mut Module) -> Parts<'_> {
        Parts { module, entries: Vec::new() }
    }

    fn set(&mut self, name: &str, value: AttrId) {
        let name = self.module.intern(name.as_bytes());
        let name = self.module.attributes.push(Attribute::String(name));
        self.entries.push((name, value));
    }

    fn integer(&mut self, name: &str, r: &mut Reader<'_>) -> Result<()> {
        let value = self.module.push_integer(r.signed()?);
        self.set(name, value);
        Ok(())
    }

    fn list(&mut self, name: &str, r: &mut Reader<'_>) -> Result<()> {
        let values = r.list(Reader::signed)?;
        let value = self.module.push_integers(&values);
        self.set(name, value);
        Ok(())
    }

    fn finish(self) -> Attribute {
        Attribute::Dictionary(self.entries)
    }
}

fn integers(r: &mut Reader<'_>, module: &mut Module, names: &[&str]) -> Result<Attribute> {
    let mut parts = Parts::new(module);
    for name in names {
        parts.integer(name, r)?;
    }
    Ok(parts.finish())
}

fn lists(r: &mut Reader<'_>, module: &mut Module, names: &[&str]) -> Result<Attribute> {
    let mut parts = Parts::new(module);
    for name in names {
        parts.list(name, r)?;
    }
    Ok(parts.finish())
}

/// Decodes the dimension numbers of a gather or scatter: lists, followed by the index vector dimension. Old files lack
/// the two lists of batching dimensions in the middle.
fn indexed(r: &mut Reader<'_>, module: &mut Module, names: [&str; 5]) -> Result<Attribute> {
    let mut ahead = r.clone();
    let has_batching =
        (0..5).all(|_| ahead.list(Reader::signed).is_ok()) && ahead.signed().is_ok() && ahead.is_at_end();
    let mut parts = Parts::new(module);
    for (i, name) in names.into_iter().enumerate() {
        match (has_batching, i) {
            (false, 2 | 3) => {
                let none = parts.module.push_integers(&[]);
                parts.set(name, none);
            }
            _ => parts.list(name, r)?,
        }
    }
    parts.integer("index_vector_dim", r)?;
    Ok(parts.finish())
}

fn convolution(r: &mut Reader<'_>, module: &mut Module) -> Result<Attribute> {
    let mut parts = Parts::new(module);
    for [one, another, spatial] in [
        ["input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"],
        ["kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"],
        ["output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"],
    ] {
        parts.integer(one, r)?;
        parts.integer(another, r)?;
        parts.list(spatial, r)?;
    }
    Ok(parts.finish())
}

fn dot_algorithm(r: &mut Reader<'_>, module: &mut Module) -> Result<Attribute> {
    let mut parts = Parts::new(module);
    for name in ["lhs_precision_type", "rhs_precision_type", "accumulation_type"] {
        let ty = parts.module.attributes.push(Attribute::Type(r.ty()?));
        parts.set(name, ty);
    }
    for name in ["lhs_component_count", "rhs_component_count", "num_primitive_operations"] {
        parts.integer(name, r)?;
    }
    let imprecise = parts.module.attributes.push(Attribute::Bool(r.boolean()?));
    parts.set("allow_imprecise_accumulation", imprecise);
    Ok(parts.finish())
}
