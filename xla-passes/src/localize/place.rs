//! Relation of a value in the new program to a value of the original program.

use std::rc::Rc;

use xla_hlo::ops::{Collective, Constant, DynamicSlice};
use xla_hlo::sdy::{Meshes, TensorSharding};
use xla_hlo::{
    ArrayShape, ElementType, Error, InstrId, LeafSharding, Literal, Result, Scalar, ShardingKind, multi_index,
};

use crate::join::entry::in_tiles;
use crate::join::spread::Tiles;
use crate::rewrite::builder::Inserter;

/// Value of the new program.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// Instruction that computes it.
    pub id: InstrId,
    /// Place of each leaf, depth first.
    pub places: Vec<Place>,
}

/// Relation of a leaf to the original program.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// Independent of devices and arguments: equal as a global value and as a value of each device. Also a token.
    Same,
    /// Value of each device inside of a manual computation.
    Local,
    /// Part of a global value.
    Part(Rc<Split>),
}

/// Split of a global value over the devices.
#[derive(Clone, Debug)]
pub(super) struct Split {
    pub sharding: LeafSharding,
    pub tiles: Tiles,
}

/// Two splits are equal if each device has an equal part.
impl PartialEq for Split {
    fn eq(&self, other: &Split) -> bool {
        self.tiles == other.tiles
    }
}

impl Split {
    /// Computes the split of an array by a sharding; without one, the array is replicated.
    pub fn new(
        meshes: &Meshes,
        sharding: Option<&TensorSharding>,
        shape: &ArrayShape,
        devices: usize,
    ) -> Result<Split> {
        let reduction = sharding.map(|sharding| sharding.reduction).unwrap_or_default();
        let sharding = sharding.map_or_else(|| Ok(LeafSharding::default()), |sharding| in_tiles(meshes, sharding))?;
        if matches!(sharding.kind, ShardingKind::Maximal(_)) {
            return Err(Error::unimplemented("a global value is on one device only"));
        }
        let tiles = Tiles::new(&sharding, reduction, shape, devices)?;
        Ok(Split { sharding, tiles })
    }

    /// Whether every device has the whole array.
    pub fn is_replicated(&self) -> bool {
        self.tiles.grid.count() == 1
    }

    /// Whether devices have partial values that are still to be reduced.
    pub fn is_unreduced(&self) -> bool {
        self.tiles.grid.operands > 1
    }

    /// Emits the part that the device has of a replicated array.
    pub fn part_of_replicated(&self, at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
        if self.is_unreduced() {
            return Err(Error::unimplemented("a replicated value is converted to partial values"));
        }
        let Tiles { grid, of_partition } = &self.tiles;
        let sizes = grid.part_of(at.array(x)?).dims().to_vec();
        let partition = at.add(Collective::PartitionId, [])?;
        let mut operands = vec![x];
        for (dim, &size) in sizes.iter().enumerate() {
            let starts = of_partition.iter().map(|&part| (multi_index(&grid.dims, part)[dim] * size) as i64);
            let starts: Vec<Scalar> = starts.map(Scalar::Signed).collect();
            let table = Literal::from_fn(&ArrayShape::new(ElementType::S64, [starts.len()]), |i| starts[i])?;
            let table = at.add(Constant { literal: table }, [])?;
            let start = at.add(DynamicSlice { sizes: vec![1] }, [table, partition])?;
            operands.push(at.reshape(start, &[])?);
        }
        at.add(DynamicSlice { sizes }, operands)
    }
}

impl Place {
    /// Whether a value of both places is one of a manual computation, is replicated, or has equal splits.
    fn agrees_with(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Part(a), Place::Part(b)) if a.is_replicated() && b.is_replicated() => true,
            (a, b) => a == b,
        }
    }
}

/// Returns the place of a value computed from values of these places.
pub(super) fn common<'p>(places: impl Iterator<Item = &'p Place>) -> Result<Place> {
    let mut found = Place::Same;
    for place in places.filter(|place| **place != Place::Same) {
        if found != Place::Same && !found.agrees_with(place) {
            return Err(Error::unimplemented("its operands are split in different ways"));
        }
        found = place.clone();
    }
    Ok(found)
}
