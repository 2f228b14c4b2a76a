//! Spread of an array over devices: its parts, and which device has which.

use xla_hlo::ops::{Slice, SliceRange};
use xla_hlo::{ArrayShape, Error, InstrId, LeafSharding, Result, ShardingKind, SubgroupKind};

use crate::rewrite::builder::Inserter;

/// An argument or result of a joined program as the devices have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Its split over the partitions.
    pub sharding: LeafSharding,
    /// For each device the number of the argument or result of the joined program that is its part.
    pub parts: Vec<usize>,
}

/// Equal parts of an array, a grid of them, and the devices' parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tiles {
    /// Parts along each dimension.
    pub grid: Vec<usize>,
    /// For each partition the number of its part, row major.
    pub of_partition: Vec<usize>,
}

impl Tiles {
    /// The parts of an array of that shape.
    ///
    /// `Error::Unimplemented` for dimensions that cannot be cut into equal parts and for parts that are to be summed.
    pub fn new(sharding: &LeafSharding, shape: &ArrayShape, partitions: usize) -> Result<Tiles> {
        let tiled = match &sharding.kind {
            ShardingKind::Replicated | ShardingKind::Manual | ShardingKind::Unknown | ShardingKind::Maximal(_) => {
                return Ok(Tiles { grid: vec![1; shape.rank()], of_partition: vec![0; partitions] });
            }
            ShardingKind::Unreduced => return Err(Error::unimplemented("parts that are to be summed at the entry")),
            ShardingKind::Named(text) => return Err(Error::unimplemented(format!("the sharding {text} at the entry"))),
            ShardingKind::Tiled(tiled) => tiled,
        };
        if tiled.last_tile_dims.contains(&SubgroupKind::Unreduced) {
            return Err(Error::unimplemented("parts that are to be summed at the entry"));
        }
        let sizes = tiled.tile_dims.iter().map(|&size| usize::try_from(size).ok().filter(|&size| size > 0));
        let sizes = sizes.collect::<Option<Vec<usize>>>().filter(|sizes| sizes.len() >= shape.rank());
        let sizes = sizes.ok_or_else(|| Error::invalid_argument("a sharding of another rank than the array"))?;
        let (grid, copies) = sizes.split_at(shape.rank());
        if let Some((&size, &parts)) = shape.dims().iter().zip(grid).find(|(size, parts)| !size.is_multiple_of(**parts))
        {
            return Err(Error::unimplemented(format!("a dimension of {size} elements in {parts} parts at the entry")));
        }
        let copies: usize = copies.iter().product();
        let mut of_partition = vec![None; partitions];
        for (place, device) in tiled.listed_devices()?.into_iter().enumerate() {
            let device = usize::try_from(device).ok().and_then(|device| of_partition.get_mut(device));
            *device
                .ok_or_else(|| Error::invalid_argument("a sharding names a device that the program does not have"))? =
                Some(place / copies);
        }
        let of_partition: Option<Vec<usize>> = of_partition.into_iter().collect();
        let count: usize = grid.iter().product();
        let of_partition = of_partition.filter(|parts| parts.iter().all(|&part| part < count));
        let of_partition =
            of_partition.ok_or_else(|| Error::invalid_argument("a sharding does not name all devices"))?;
        Ok(Tiles { grid: grid.to_vec(), of_partition })
    }

    /// Number of parts.
    pub fn count(&self) -> usize {
        self.grid.iter().product()
    }

    /// The shape of a part.
    pub fn part(&self, shape: &ArrayShape) -> ArrayShape {
        let dims: Vec<usize> = shape.dims().iter().zip(&self.grid).map(|(size, parts)| size / parts).collect();
        ArrayShape::new(shape.element_type(), dims).with_layout(shape.layout().cloned())
    }
}

/// One part of an array that is cut into equal ones, by its place in the grid.
pub(super) fn part(at: &mut Inserter<'_>, x: InstrId, grid: &[usize], place: &[usize]) -> Result<InstrId> {
    if grid.iter().all(|&parts| parts == 1) {
        return Ok(x);
    }
    let dims = at.dims(x);
    let range = |((&size, &parts), &place): ((&usize, &usize), &usize)| {
        let size = size / parts;
        SliceRange { start: place * size, limit: (place + 1) * size, stride: 1 }
    };
    let ranges = dims.iter().zip(grid).zip(place).map(range).collect();
    at.add(Slice { ranges }, [x])
}

/// An array of its parts, which are given row major.
pub(super) fn whole(at: &mut Inserter<'_>, mut parts: Vec<InstrId>, grid: &[usize]) -> Result<InstrId> {
    for (dimension, &count) in grid.iter().enumerate().rev().filter(|(_, count)| **count > 1) {
        let rows = parts.chunks(count).map(|row| at.concatenate(row, dimension));
        parts = rows.collect::<Result<_>>()?;
    }
    parts.first().copied().ok_or_else(|| Error::internal("an array without parts"))
}
