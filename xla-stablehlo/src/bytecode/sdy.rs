//! The `sdy` dialect (Shardy): meshes and shardings. It has no types of its own.

use xla_hlo::Result;

use super::reader::Reader;
use crate::ir::{Attribute, Name, Sharding};

/// Decodes an `sdy` attribute.
pub(super) fn attribute(r: &mut Reader<'_>) -> Result<Attribute> {
    let sharding = match r.varint()? {
        0 => Sharding::ManualAxes(r.attributes()?),
        1 => Sharding::MeshAxis { name: Name::String(r.string()?), size: r.signed()? },
        2 => Sharding::Mesh { axes: r.attributes()?, device_ids: r.list(Reader::signed)? },
        3 => Sharding::SubAxis { pre_size: r.signed()?, size: r.signed()? },
        4 => Sharding::AxisRef { name: Name::String(r.string()?), sub_axis: r.optional_attribute()? },
        5 => {
            let (axes, is_closed) = (r.attributes()?, r.boolean()?);
            let (priority, is_there) = r.flagged()?;
            Sharding::Dimension { axes, is_closed, priority: is_there.then_some(priority) }
        }
        6 => tensor(r, false, false)?,
        7 | 16 => Sharding::PerValue(r.attributes()?),
        8 => Sharding::DimensionMapping(r.list(Reader::signed)?),
        9 => Sharding::TensorMapping(r.attributes()?),
        10 => {
            let (factors, operands, results) = (r.list(Reader::signed)?, r.attributes()?, r.attributes()?);
            let mut kind = || r.list(Reader::signed);
            let kinds = [kind()?, kind()?, kind()?, kind()?];
            Sharding::Rule { factors, operands, results, kinds, is_custom: r.boolean()? }
        }
        11 => Sharding::AxisRefs(r.attributes()?),
        12 | 14 => Sharding::List(r.attributes()?),
        13 => Sharding::AllToAll { axes: r.attributes()?, source: r.signed()?, target: r.signed()? },
        15 => tensor(r, true, false)?,
        17 => tensor(r, true, true)?,
        code => return Ok(Attribute::Unknown(code)),
    };
    Ok(Attribute::from(sharding))
}

/// Decodes the sharding of a tensor; newer versions add unreduced axes and a reduction.
fn tensor(r: &mut Reader<'_>, has_unreduced: bool, has_reduction: bool) -> Result<Sharding> {
    Ok(Sharding::Tensor {
        mesh: r.attribute()?,
        dims: r.attributes()?,
        replicated: r.attributes()?,
        unreduced: if has_unreduced { r.attributes()? } else { Vec::new() },
        reduction: if has_reduction { r.signed()? } else { 0 },
    })
}
