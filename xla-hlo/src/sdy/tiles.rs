//! Conversion of shardings over a mesh to tiles of devices, the form of the attribute `sharding`, and back.

use super::mesh::{MAX_DEVICES, transposed_iota};
use super::{DimSharding, Mesh, MeshAxis, MeshName, MeshPart, TensorSharding, product};
use crate::{DeviceList, Error, LeafSharding, Result, ShardingKind, SubgroupKind, TiledSharding};

/// Converts a sharding over `mesh` to tiles.
///
/// The result has no openness of dimensions, no priorities and no kind of reduction.
pub fn tiles(sharding: &TensorSharding, mesh: &Mesh) -> Result<LeafSharding> {
    let kind = kind(sharding, mesh)?;
    Ok(LeafSharding { kind, ..LeafSharding::default() })
}

fn kind(sharding: &TensorSharding, mesh: &Mesh) -> Result<ShardingKind> {
    if let (true, &[device]) = (mesh.axes.is_empty(), &mesh.device_ids[..]) {
        return Ok(ShardingKind::Maximal(device));
    }
    mesh.device_count()?;
    let used: Vec<&MeshAxis> = sharding.dims.iter().flat_map(|dim| &dim.axes).chain(&sharding.unreduced).collect();
    let parts = mesh.parts(&used)?;
    let mut order = Vec::with_capacity(parts.len());
    let mut place = |axes: &[MeshAxis]| -> Result<i64> {
        let mut size = 1;
        for axis in axes {
            for part in mesh.parts_of(&parts, axis)? {
                if order.contains(&part) {
                    return Err(Error::invalid_argument(format!("{sharding} uses axis {axis} twice")));
                }
                order.push(part);
                size *= parts[part].size;
            }
        }
        Ok(size as i64)
    };
    let mut tile_dims = sharding.dims.iter().map(|dim| place(&dim.axes)).collect::<Result<Vec<i64>>>()?;
    let unreduced = place(&sharding.unreduced)?;
    let is_split = tile_dims.iter().any(|&size| size > 1);
    let rest: Vec<usize> = (0..parts.len()).filter(|part| !order.contains(part)).collect();
    let replicated: usize = rest.iter().map(|&part| parts[part].size).product();
    order.extend(rest);
    match (is_split, unreduced > 1, replicated > 1) {
        (false, false, _) => return Ok(ShardingKind::Replicated),
        (false, true, false) => return Ok(ShardingKind::Unreduced),
        _ => {}
    }
    let mut kinds = Vec::new();
    if unreduced > 1 {
        tile_dims.push(unreduced);
        kinds.push(SubgroupKind::Unreduced);
    }
    if replicated > 1 {
        tile_dims.push(replicated as i64);
        kinds.push(SubgroupKind::Replicated);
    }
    let replicate_last = kinds == [SubgroupKind::Replicated];
    let last_tile_dims = if replicate_last { Vec::new() } else { kinds };
    let devices = if mesh.device_ids.is_empty() {
        iota(&parts, &order)
    } else {
        let mut devices = mesh.devices(&parts, &order);
        if replicate_last {
            // The order of copies has no meaning; XLA lists them in ascending order.
            devices.chunks_mut(replicated).for_each(<[i64]>::sort_unstable);
        }
        DeviceList::Listed(devices)
    };
    Ok(ShardingKind::Tiled(TiledSharding { tile_dims, devices, replicate_last, last_tile_dims }))
}

/// Encodes devices 0, 1, ... of the parts in `order` as an iota; parts that remain adjacent form one dimension.
fn iota(parts: &[MeshPart], order: &[usize]) -> DeviceList {
    let kept: Vec<usize> = (0..parts.len()).filter(|&part| parts[part].size != 1).collect();
    let place = |part: &usize| kept.binary_search(part).ok();
    // First part, number of parts and size of each run of adjacent parts.
    let mut runs: Vec<(usize, usize, i64)> = Vec::new();
    for part in order.iter().filter_map(place) {
        let size = parts[kept[part]].size as i64;
        match runs.last_mut() {
            Some((first, count, whole)) if *first + *count == part => {
                *count += 1;
                *whole *= size;
            }
            _ => runs.push((part, 1, size)),
        }
    }
    let mut sorted = runs.clone();
    sorted.sort_unstable();
    let transpose: Vec<usize> = runs.iter().filter_map(|run| sorted.binary_search(run).ok()).collect();
    let reshape = sorted.iter().map(|&(_, _, size)| size).collect();
    DeviceList::Iota { reshape, transpose: if transpose.is_sorted() { Vec::new() } else { transpose } }
}

/// Converts tiles to a sharding over an inline mesh, and returns it with the axes of that mesh that the program handles
/// itself. `devices` is the number of devices of the program.
///
/// Fails with `Error::Unimplemented` for a sharding of named axes.
pub fn from_tiles(sharding: &LeafSharding, rank: usize, devices: usize) -> Result<(TensorSharding, Vec<String>)> {
    let everyone = || {
        let mesh = Mesh { axes: vec![(axis_name(0), devices)], device_ids: Vec::new() };
        TensorSharding::unsplit(MeshName::Inline(mesh), rank, false)
    };
    match &sharding.kind {
        ShardingKind::Replicated => Ok((everyone(), Vec::new())),
        ShardingKind::Unknown => Ok((TensorSharding::unsplit(everyone().mesh, rank, true), Vec::new())),
        ShardingKind::Manual => Ok((everyone(), vec![axis_name(0)])),
        ShardingKind::Unreduced => {
            let unreduced = vec![MeshAxis { name: axis_name(0), part: None }];
            Ok((TensorSharding { unreduced, ..everyone() }, Vec::new()))
        }
        ShardingKind::Maximal(device) => {
            let mesh = Mesh { axes: Vec::new(), device_ids: vec![*device] };
            Ok((TensorSharding::unsplit(MeshName::Inline(mesh), rank, false), Vec::new()))
        }
        ShardingKind::Tiled(tiled) => from_grid(tiled, rank),
        ShardingKind::Named(text) => {
            Err(Error::unimplemented(format!("the sharding {text} cannot be expressed as axes of a mesh")))
        }
    }
}

fn axis_name(i: usize) -> String {
    format!("axis_{i}")
}

/// Converts a grid of devices; each dimension of the grid becomes an axis.
fn from_grid(tiled: &TiledSharding, rank: usize) -> Result<(TensorSharding, Vec<String>)> {
    let kinds = match (tiled.replicate_last, &tiled.last_tile_dims[..]) {
        (true, _) => &[SubgroupKind::Replicated][..],
        (false, kinds) => kinds,
    };
    let dims: Option<Vec<usize>> = tiled.tile_dims.iter().map(|&size| usize::try_from(size).ok()).collect();
    let dims = dims.filter(|dims| dims.len() == rank + kinds.len());
    let dims = dims.ok_or_else(|| {
        Error::invalid_argument(format!("a grid of {:?} devices does not fit an array of rank {rank}", tiled.tile_dims))
    })?;
    let count = product(&dims)?;
    let axes: Vec<(String, usize)> =
        dims.iter().enumerate().filter(|(_, size)| **size > 1).map(|(d, &size)| (axis_name(d), size)).collect();
    let device_ids = listed(&tiled.devices, count)?;
    let is_iota = device_ids.iter().enumerate().all(|(i, &device)| device == i as i64);
    let mesh = Mesh { axes, device_ids: if is_iota { Vec::new() } else { device_ids } };
    let mut sharding = TensorSharding::unsplit(MeshName::Inline(mesh), rank, false);
    let mut manual = Vec::new();
    for (d, &size) in dims.iter().enumerate().filter(|(_, size)| **size > 1) {
        let axis = || MeshAxis { name: axis_name(d), part: None };
        match d.checked_sub(rank).map(|last| (kinds[last], size)) {
            None => sharding.dims[d] = DimSharding { axes: vec![axis()], ..DimSharding::default() },
            Some((SubgroupKind::Replicated, _)) => {}
            Some((SubgroupKind::Manual, _)) => manual.push(axis_name(d)),
            Some((SubgroupKind::Unreduced, _)) => sharding.unreduced.push(axis()),
        }
    }
    Ok((sharding, manual))
}

impl TiledSharding {
    /// Returns the devices in row-major order of the grid. Fails with `Error::InvalidArgument` if their number does not
    /// match the grid.
    pub fn listed_devices(&self) -> Result<Vec<i64>> {
        let dims: Option<Vec<usize>> = self.tile_dims.iter().map(|&size| usize::try_from(size).ok()).collect();
        let dims = dims.ok_or_else(|| {
            Error::invalid_argument(format!("a grid of {:?} devices has a negative size", self.tile_dims))
        })?;
        listed(&self.devices, product(&dims)?)
    }
}

/// Expands the devices of a grid of `count` devices to a list.
fn listed(devices: &DeviceList, count: usize) -> Result<Vec<i64>> {
    let listed = match devices {
        DeviceList::Listed(listed) => listed.clone(),
        DeviceList::Iota { reshape, transpose } => {
            let dims: Option<Vec<usize>> = reshape.iter().map(|&size| usize::try_from(size).ok()).collect();
            let dims = dims.filter(|dims| product(dims).is_ok_and(|n| n == count));
            let dims =
                dims.ok_or_else(|| Error::invalid_argument(format!("{reshape:?} is not a shape of {count} devices")))?;
            let identity: Vec<usize> = (0..dims.len()).collect();
            let order = if transpose.is_empty() { &identity } else { transpose };
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if sorted != identity {
                return Err(Error::invalid_argument(format!("{transpose:?} does not transpose {reshape:?}")));
            }
            transposed_iota(&dims, order)
        }
    };
    if listed.len() == count && count <= MAX_DEVICES {
        return Ok(listed);
    }
    Err(Error::invalid_argument(format!("a grid of {count} devices lists {}", listed.len())))
}
