//! Conversion of Shardy's attributes to the data structures of `xla_hlo::sdy`.

use xla_hlo::ops::collective::MeshGroups;
use xla_hlo::sdy::{
    DimSharding, ManualAxes, Mesh, MeshAxis, MeshName, Meshes, PerValue, Reduction, TensorSharding, tiles,
};
use xla_hlo::{Error, LeafSharding, Result};

use super::attributes::Attributes;
use super::call::stem;
use crate::ir::{AttrId, Attribute, Module, Name, OpId, Sharding};

/// Returns the named meshes of a program.
pub(super) fn meshes(program: &Module, top: OpId) -> Result<Meshes> {
    let mut meshes = Meshes::default();
    let blocks = program.operations[top].regions.iter().flat_map(|&region| &program.regions[region].blocks);
    for &op in blocks.flat_map(|&block| &program.blocks[block].operations) {
        if stem(program, op) != ("sdy", "mesh") {
            continue;
        }
        let attributes = Attributes { module: program, op };
        let name = attributes.symbol("sym_name")?;
        let id = attributes.get("mesh").ok_or_else(|| Error::invalid_argument("a mesh has no axes"))?;
        let read = mesh(program, id).map_err(|error| error.context(format!("sdy.mesh, {}", program.place(op))))?;
        if meshes.0.insert(name.clone(), read).is_some() {
            return Err(Error::invalid_argument(format!("two meshes are called {name}")));
        }
    }
    Ok(meshes)
}

/// Replaces an inline mesh in a sharding by a named one, which is added if needed.
pub(super) fn with_name(meshes: &mut Meshes, sharding: TensorSharding) -> TensorSharding {
    let MeshName::Inline(mesh) = &sharding.mesh else { return sharding };
    let known = meshes.0.iter().find(|(_, known)| *known == mesh).map(|(name, _)| name.clone());
    let name = known.unwrap_or_else(|| {
        let stem = match (mesh.axes.is_empty(), &mesh.device_ids[..]) {
            (true, &[device]) => format!("maximal_mesh_{device}"),
            _ => "mesh".to_string(),
        };
        let numbered = (0..).map(|i| format!("{stem}_{i}"));
        let mut names = std::iter::once(stem.clone()).chain(numbered);
        let name = names.find(|name| !meshes.0.contains_key(name)).unwrap_or(stem.clone());
        meshes.0.insert(name.clone(), mesh.clone());
        name
    });
    TensorSharding { mesh: MeshName::Named(name), ..sharding }
}

/// Converts a sharding over one of these meshes to a tile assignment.
pub(super) fn tiles_of(meshes: &Meshes, sharding: &TensorSharding) -> Result<LeafSharding> {
    let mesh = match &sharding.mesh {
        MeshName::Named(name) => meshes.0.get(name),
        MeshName::Inline(mesh) => Some(mesh),
    };
    tiles(
        sharding,
        mesh.ok_or_else(|| Error::invalid_argument(format!("{sharding} refers to a mesh that does not exist")))?,
    )
}

fn unexpected<T>(module: &Module, id: AttrId, what: &str) -> Result<T> {
    let text = module.attribute_text(id);
    Err(Error::invalid_argument(format!("{text} is not {what}")))
}

fn text(module: &Module, name: Name) -> Result<String> {
    match name {
        Name::String(string) => Ok(module.text(string).into_owned()),
        Name::Attribute(id) => match module.string_attribute(id) {
            Some(text) => Ok(text.into_owned()),
            None => unexpected(module, id, "a name"),
        },
    }
}

fn size(module: &Module, id: AttrId, size: i64) -> Result<usize> {
    usize::try_from(size).or_else(|_| unexpected(module, id, "an axis of a size of at least 0"))
}

fn mesh(module: &Module, id: AttrId) -> Result<Mesh> {
    let (axes, device_ids) = match module.attributes[id].sharding() {
        Some(Sharding::Mesh { axes, device_ids }) => (axes, device_ids.clone()),
        Some(Sharding::MeshOfAttributes { axes, device_ids }) => {
            let Attribute::Array(list) = &module.attributes[*axes] else {
                return unexpected(module, *axes, "a list of axes");
            };
            (list, device_ids.map_or(Ok(Vec::new()), |ids| super::attributes::integers(module, ids))?)
        }
        _ => return unexpected(module, id, "a mesh"),
    };
    let axis = |&id: &AttrId| match module.attributes[id].sharding() {
        Some(Sharding::MeshAxis { name, size: extent }) => Ok((text(module, *name)?, size(module, id, *extent)?)),
        _ => unexpected(module, id, "an axis"),
    };
    Ok(Mesh { axes: axes.iter().map(axis).collect::<Result<_>>()?, device_ids })
}

fn axes(module: &Module, list: &[AttrId]) -> Result<Vec<MeshAxis>> {
    let one = |&id: &AttrId| {
        let Some(Sharding::AxisRef { name, sub_axis }) = module.attributes[id].sharding() else {
            return unexpected(module, id, "a reference to an axis");
        };
        let part = |id: AttrId| match module.attributes[id].sharding() {
            Some(&Sharding::SubAxis { pre_size, size: extent }) => {
                Ok((size(module, id, pre_size)?, size(module, id, extent)?))
            }
            _ => unexpected(module, id, "a part of an axis"),
        };
        Ok(MeshAxis { name: text(module, *name)?, part: sub_axis.map(part).transpose()? })
    };
    list.iter().map(one).collect()
}

/// Converts the sharding of one tensor.
pub(super) fn tensor(module: &Module, id: AttrId) -> Result<TensorSharding> {
    let Some(Sharding::Tensor { mesh: mesh_id, dims, replicated, unreduced, reduction }) =
        module.attributes[id].sharding()
    else {
        return unexpected(module, id, "the sharding of a tensor");
    };
    let reduction = match reduction {
        0 => Reduction::Sum,
        1 => Reduction::Max,
        2 => Reduction::Min,
        other => {
            return Err(Error::unimplemented(format!("reduction {other} of an unreduced sharding is not supported")));
        }
    };
    let dim = |&id: &AttrId| match module.attributes[id].sharding() {
        Some(Sharding::Dimension { axes: list, is_closed, priority }) => {
            Ok(DimSharding { axes: axes(module, list)?, is_open: !is_closed, priority: *priority })
        }
        _ => unexpected(module, id, "the sharding of a dimension"),
    };
    Ok(TensorSharding {
        mesh: mesh_name(module, *mesh_id)?,
        dims: dims.iter().map(dim).collect::<Result<_>>()?,
        replicated: axes(module, replicated)?,
        unreduced: axes(module, unreduced)?,
        reduction,
    })
}

fn mesh_name(module: &Module, id: AttrId) -> Result<MeshName> {
    let name = match &module.attributes[id] {
        Attribute::Symbol(path) if path.len() == 1 => module.string_attribute(path[0]),
        _ => module.string_attribute(id),
    };
    match name {
        Some(name) => Ok(MeshName::Named(name.into_owned())),
        None => mesh(module, id).map(MeshName::Inline),
    }
}

/// Converts the shardings of several values, or of one.
pub(super) fn per_value(module: &Module, id: AttrId) -> Result<PerValue> {
    let list = match (module.attributes[id].sharding(), &module.attributes[id]) {
        (Some(Sharding::PerValue(list)), _) | (None, Attribute::Array(list)) => list,
        _ => return Ok(PerValue(vec![tensor(module, id)?])),
    };
    list.iter().map(|&id| tensor(module, id)).collect::<Result<_>>().map(PerValue)
}

/// Converts the manual axes of a computation.
pub(super) fn manual_axes(module: &Module, id: AttrId) -> Result<ManualAxes> {
    let list = match (module.attributes[id].sharding(), &module.attributes[id]) {
        (Some(Sharding::ManualAxes(list)), _) | (None, Attribute::Array(list)) => list,
        _ => return unexpected(module, id, "a list of axes"),
    };
    list.iter().map(|&id| text(module, Name::Attribute(id))).collect::<Result<_>>().map(ManualAxes)
}

/// Converts replica groups along axes of a mesh; `None` if the attribute lists the groups.
pub(super) fn replica_groups(attributes: Attributes<'_>, meshes: &Meshes, name: &str) -> Result<Option<MeshGroups>> {
    let module = attributes.module;
    let Some(Sharding::ReplicaGroups { mesh, axes: list }) =
        attributes.get(name).and_then(|id| module.attributes[id].sharding())
    else {
        return Ok(None);
    };
    let mesh = match mesh_name(module, *mesh)? {
        MeshName::Inline(mesh) => mesh,
        MeshName::Named(name) => {
            let mesh = meshes.0.get(&name).cloned();
            mesh.ok_or_else(|| Error::invalid_argument(format!("the mesh {name} of replica_groups does not exist")))?
        }
    };
    let list = match (module.attributes[*list].sharding(), &module.attributes[*list]) {
        (Some(Sharding::AxisRefs(list)), _) | (None, Attribute::Array(list)) => list,
        _ => return unexpected(module, *list, "a list of axes"),
    };
    Ok(Some(MeshGroups { mesh, along: axes(module, list)? }))
}
