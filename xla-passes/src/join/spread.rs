//! Spread of an array over devices: its parts, and the part of each device.

use xla_hlo::ops::{BinaryOp, Slice, SliceRange};
use xla_hlo::sdy::Reduction;
use xla_hlo::{
    ArrayShape, Dynamism, ElementKind, ElementType, Error, InstrId, LeafSharding, Result, ShardingKind, SubgroupKind,
    multi_index,
};

use crate::rewrite::builder::Inserter;

/// An argument or result of a joined program as the devices see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Split over the partitions.
    pub sharding: LeafSharding,
    /// Number of the argument or result of the joined program that holds the part of each device.
    pub parts: Vec<usize>,
}

/// A grid of equal parts of an array. Each part may be the reduction of several arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Number of parts along each dimension.
    pub dims: Vec<usize>,
    /// Number of arrays that are reduced to one part.
    pub operands: usize,
    pub reduction: Reduction,
}

/// The parts of an array, and the part of each partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tiles {
    pub grid: Grid,
    /// Number of each partition's part: row-major, then by operand of the reduction.
    pub of_partition: Vec<usize>,
}

impl Tiles {
    /// Computes the parts of an array of that shape.
    ///
    /// Returns `Error::Unimplemented` for dimensions that cannot be cut into equal parts.
    pub fn new(sharding: &LeafSharding, reduction: Reduction, shape: &ArrayShape, partitions: usize) -> Result<Tiles> {
        let mut grid = Grid { dims: vec![1; shape.rank()], operands: 1, reduction };
        let tiled = match &sharding.kind {
            ShardingKind::Replicated | ShardingKind::Manual | ShardingKind::Unknown | ShardingKind::Maximal(_) => {
                return Ok(Tiles { grid, of_partition: vec![0; partitions] });
            }
            ShardingKind::Unreduced => {
                grid.operands = partitions;
                return Ok(Tiles { grid, of_partition: (0..partitions).collect() });
            }
            ShardingKind::Named(text) => {
                return Err(Error::unimplemented(format!("the sharding {text} is not supported at the entry")));
            }
            ShardingKind::Tiled(tiled) => tiled,
        };
        let sizes = tiled.tile_dims.iter().map(|&size| usize::try_from(size).ok().filter(|&size| size > 0));
        let sizes = sizes.collect::<Option<Vec<usize>>>().filter(|sizes| sizes.len() >= shape.rank());
        let sizes = sizes
            .ok_or_else(|| Error::invalid_argument("the rank of the sharding differs from the rank of the array"))?;
        let (dims, rest) = sizes.split_at(shape.rank());
        if let Some((&size, &parts)) = shape.dims().iter().zip(dims).find(|(size, parts)| !size.is_multiple_of(**parts))
        {
            return Err(Error::unimplemented(format!(
                "a dimension of {size} elements at the entry cannot be split into {parts} equal parts"
            )));
        }
        if let Some(d) = (0..shape.rank()).find(|&d| dims[d] > 1 && shape.dynamism(d) != Dynamism::Static) {
            return Err(Error::unimplemented(format!("dimension {d} of dynamic size is split over the devices")));
        }
        let is_operand = |d: usize| tiled.last_tile_dims.get(d) == Some(&SubgroupKind::Unreduced);
        grid.dims = dims.to_vec();
        grid.operands = (0..rest.len()).filter(|&d| is_operand(d)).map(|d| rest[d]).product();
        let copies: usize = rest.iter().product();
        let part = |place: usize| {
            let among = multi_index(rest, place % copies);
            let operand = (0..rest.len()).filter(|&d| is_operand(d)).fold(0, |n, d| n * rest[d] + among[d]);
            place / copies * grid.operands + operand
        };
        let mut of_partition = vec![None; partitions];
        for (place, device) in tiled.listed_devices()?.into_iter().enumerate() {
            let device = usize::try_from(device).ok().and_then(|device| of_partition.get_mut(device));
            let unknown = || Error::invalid_argument("the sharding names a device that the program does not have");
            *device.ok_or_else(unknown)? = Some(part(place));
        }
        let of_partition: Option<Vec<usize>> = of_partition.into_iter().collect();
        let of_partition =
            of_partition.ok_or_else(|| Error::invalid_argument("the sharding does not name all devices"))?;
        Ok(Tiles { grid, of_partition })
    }
}

impl Grid {
    /// Returns the number of parts.
    pub fn count(&self) -> usize {
        self.dims.iter().product::<usize>() * self.operands
    }

    /// Returns the shape of a part.
    pub fn part_of(&self, shape: &ArrayShape) -> ArrayShape {
        let dims: Vec<usize> = shape.dims().iter().zip(&self.dims).map(|(size, parts)| size / parts).collect();
        let dynamism = (0..shape.rank()).map(|d| shape.dynamism(d)).collect();
        ArrayShape::new(shape.element_type(), dims).with_dynamism(dynamism).with_layout(shape.layout().cloned())
    }

    /// Returns one part of an array. Among parts that are summed, the first one has the value, and the others are zero.
    pub fn part(&self, at: &mut Inserter<'_>, x: InstrId, number: usize) -> Result<InstrId> {
        if self.reduction == Reduction::Sum && !number.is_multiple_of(self.operands) {
            let shape = self.part_of(at.array(x)?);
            return at.zeros(&shape);
        }
        if self.dims.iter().all(|&parts| parts == 1) {
            return Ok(x);
        }
        let (dims, place) = (at.dims(x), multi_index(&self.dims, number / self.operands));
        let range = |((&size, &parts), place): ((&usize, &usize), usize)| {
            let size = size / parts;
            SliceRange { start: place * size, limit: (place + 1) * size, stride: 1 }
        };
        let ranges = dims.iter().zip(&self.dims).zip(place).map(range).collect();
        at.add(Slice { ranges }, [x])
    }

    /// Returns the operation that reduces partial values.
    pub fn operator(&self, ty: ElementType) -> BinaryOp {
        match self.reduction {
            Reduction::Sum if ty.kind() == ElementKind::Pred => BinaryOp::Or,
            Reduction::Sum => BinaryOp::Add,
            Reduction::Max => BinaryOp::Maximum,
            Reduction::Min => BinaryOp::Minimum,
        }
    }

    /// Assembles an array from its parts.
    pub fn whole(&self, at: &mut Inserter<'_>, mut parts: Vec<InstrId>) -> Result<InstrId> {
        if self.operands > 1 {
            let ty = at.element_type(parts[0])?;
            let op = self.operator(ty);
            let reduced = parts.chunks(self.operands).map(|operands| {
                let (first, rest) = operands
                    .split_first()
                    .ok_or_else(|| Error::internal("an unreduced array has no operands to reduce"))?;
                rest.iter().try_fold(*first, |sum, &next| at.binary(op, sum, next))
            });
            parts = reduced.collect::<Result<_>>()?;
        }
        for (dimension, &count) in self.dims.iter().enumerate().rev().filter(|(_, count)| **count > 1) {
            let rows = parts.chunks(count).map(|row| at.concatenate(row, dimension));
            parts = rows.collect::<Result<_>>()?;
        }
        parts.first().copied().ok_or_else(|| Error::internal("an array has no parts"))
    }
}
