//! Relation of a value in the new program to a value of the original program.

use std::rc::Rc;

use xla_hlo::ops::{Collective, Constant, DynamicSlice};
use xla_hlo::sdy::{Meshes, Reduction, TensorSharding};
use xla_hlo::{
    ArrayShape, CompId, DeviceList, ElementType, Error, InstrId, LeafSharding, Literal, Op, Result, Scalar,
    ShardingKind, TiledSharding, multi_index,
};

use crate::join::entry::in_tiles;
use crate::join::spread::{Grid, Tiles};
use crate::rewrite::builder::Inserter;

/// Value of the new program.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// Instruction that computes it.
    pub id: InstrId,
    /// Place of each leaf, depth first.
    pub places: Rc<[Place]>,
}

impl Value {
    /// Returns the value as if it had other places.
    pub fn at(&self, places: Vec<Place>) -> Value {
        Value { id: self.id, places: places.into() }
    }

    /// Whether a conversion to other places leaves the value as it is.
    pub fn is_placed(&self, places: &[Place]) -> bool {
        self.places.iter().zip(places).all(|(own, wanted)| match wanted {
            Place::Part(wanted) if wanted.is_replicated() => own.split().is_none_or(|own| own.is_replicated()),
            Place::Part(wanted) => own.split() == Some(wanted),
            Place::Same | Place::Local => true,
        })
    }
}

/// Form of a computation of one parameter for one list of places of its parameter.
#[derive(Clone)]
pub(super) struct Form {
    /// Computation of the new program.
    pub id: CompId,
    /// Its root.
    pub result: Value,
}

/// Known forms of a computation, by places.
pub(super) type ByPlaces<T> = Vec<(Rc<[Place]>, T)>;

/// Returns an element of a list by its places.
pub(super) fn found<T: Clone>(list: Option<&ByPlaces<T>>, places: &[Place]) -> Option<T> {
    list.into_iter().flatten().find(|(own, _)| **own == *places).map(|(_, value)| value.clone())
}

/// Relation of a leaf to the original program.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Split of one dimension over the devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Along {
    /// Number of parts.
    pub count: usize,
    /// Number of each partition's part.
    of_partition: Vec<usize>,
}

/// Two splits are equal if each device has an equal part.
impl PartialEq for Split {
    fn eq(&self, other: &Split) -> bool {
        self.tiles == other.tiles
    }
}

impl Eq for Split {}

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
        let mut tiles = Tiles::new(&sharding, reduction, shape, devices)?;
        if tiles.grid.operands == 1 {
            tiles.grid.reduction = Reduction::Sum;
        }
        Ok(Split { sharding, tiles })
    }

    /// Computes the split of an array whose dimensions are split independently of each other; `None` if some parts are
    /// on no device, or on more devices than others. Among `known` splits, an equal one is used.
    pub fn of_dims(dims: &[Option<Along>], devices: usize, known: &[&Rc<Split>]) -> Option<Rc<Split>> {
        let counts: Vec<usize> = dims.iter().map(|along| along.as_ref().map_or(1, |along| along.count)).collect();
        let count = counts.iter().try_fold(1usize, |product, &count| product.checked_mul(count))?;
        if !devices.is_multiple_of(count) {
            return None;
        }
        let part = |partition: usize| {
            let place = dims.iter().flatten().map(|along| (along.count, along.of_partition[partition]));
            place.fold(0, |number, (count, own)| number * count + own)
        };
        let of_partition: Vec<usize> = (0..devices).map(part).collect();
        let mut owners = vec![0; count];
        of_partition.iter().for_each(|&part| owners[part] += 1);
        if owners.iter().any(|&owners| owners != devices / count) {
            return None;
        }
        let grid = Grid { dims: counts, operands: 1, reduction: Reduction::Sum };
        let tiles = Tiles { grid, of_partition };
        let same = known.iter().find(|split| split.tiles == tiles).map(|&split| split.clone());
        Some(same.unwrap_or_else(|| Rc::new(Split { sharding: tiled(&tiles), tiles })))
    }

    /// Returns the split along a dimension; `None` if every device has the whole dimension.
    pub fn along(&self, dimension: usize) -> Option<Along> {
        let Tiles { grid, of_partition } = &self.tiles;
        let count = grid.dims[dimension];
        let own = |part: &usize| multi_index(&grid.dims, part / grid.operands)[dimension];
        (count > 1).then(|| Along { count, of_partition: of_partition.iter().map(own).collect() })
    }

    /// Whether every device has the whole array.
    pub fn is_replicated(&self) -> bool {
        self.tiles.grid.count() == 1
    }

    /// Whether devices have partial values that are still to be reduced.
    pub fn is_unreduced(&self) -> bool {
        self.tiles.grid.operands > 1
    }

    /// Returns the split of the values that partial values are reduced to.
    pub fn reduced(&self) -> Rc<Split> {
        let Tiles { grid, of_partition } = &self.tiles;
        let of_partition = of_partition.iter().map(|part| part / grid.operands).collect();
        let grid = Grid { dims: grid.dims.clone(), operands: 1, reduction: Reduction::Sum };
        let tiles = Tiles { grid, of_partition };
        Rc::new(Split { sharding: tiled(&tiles), tiles })
    }

    /// Emits the part that the device has of a replicated array.
    pub fn part_of_replicated(&self, at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
        if self.is_unreduced() {
            return Err(Error::unimplemented("a replicated value is converted to partial values"));
        }
        let array = at.array(x)?;
        if !array.is_static() {
            return Err(Error::unimplemented("a replicated array of dynamic size is cut into parts"));
        }
        let Tiles { grid, of_partition: parts } = &self.tiles;
        let sizes = grid.part_of(array).dims().to_vec();
        // All parts along new dimensions of a broadcast are equal.
        if let Op::Broadcast(op) = at.graph()[x].op()
            && op.dimensions.iter().all(|&d| grid.dims[d] == 1)
        {
            let (dimensions, operand) = (op.dimensions.clone(), at.operands(x)[0]);
            return at.broadcast(operand, &sizes, &dimensions);
        }
        let partition = at.add(Collective::PartitionId, [])?;
        let mut operands = vec![x];
        for (dim, &size) in sizes.iter().enumerate() {
            if grid.dims[dim] == 1 {
                operands.push(at.integer(ElementType::S64, 0)?);
                continue;
            }
            let starts = parts.iter().map(|&part| (multi_index(&grid.dims, part)[dim] * size) as i64);
            let starts: Vec<Scalar> = starts.map(Scalar::Signed).collect();
            operands.push(of_partition(at, partition, ElementType::S64, &starts)?);
        }
        at.add(DynamicSlice { sizes }, operands)
    }
}

/// Emits the scalar that a table has for the device's partition.
pub(super) fn of_partition(
    at: &mut Inserter<'_>,
    partition: InstrId,
    ty: ElementType,
    table: &[Scalar],
) -> Result<InstrId> {
    let table = Literal::from_fn(&ArrayShape::new(ty, [table.len()]), |i| table[i])?;
    let table = at.add(Constant { literal: table }, [])?;
    let own = at.add(DynamicSlice { sizes: vec![1] }, [table, partition])?;
    at.reshape(own, &[])
}

/// Returns the sharding of tiles that need no reduction and are each on an equal number of devices.
fn tiled(tiles: &Tiles) -> LeafSharding {
    let (count, devices) = (tiles.grid.count(), tiles.of_partition.len());
    if count == 1 {
        return LeafSharding::default();
    }
    let copies = devices / count;
    let mut order: Vec<usize> = (0..devices).collect();
    order.sort_by_key(|&partition| tiles.of_partition[partition]);
    let devices = match order.is_sorted() {
        true => DeviceList::Iota { reshape: vec![devices as i64], transpose: Vec::new() },
        false => DeviceList::Listed(order.into_iter().map(|partition| partition as i64).collect()),
    };
    let last = (copies > 1).then_some(copies);
    let kind = ShardingKind::Tiled(TiledSharding {
        tile_dims: tiles.grid.dims.iter().copied().chain(last).map(|size| size as i64).collect(),
        devices,
        replicate_last: copies > 1,
        last_tile_dims: Vec::new(),
    });
    LeafSharding { kind, ..LeafSharding::default() }
}

impl Place {
    /// Returns the split of a global value.
    pub fn split(&self) -> Option<&Rc<Split>> {
        match self {
            Place::Part(split) => Some(split),
            Place::Same | Place::Local => None,
        }
    }

    /// Whether all devices have the same whole value.
    pub fn is_whole(&self) -> bool {
        match self {
            Place::Same => true,
            Place::Local => false,
            Place::Part(split) => split.is_replicated(),
        }
    }

    /// Returns a place that values of both places can be converted to without communication; `None` if there is none.
    pub fn joined(&self, other: &Place) -> Option<Place> {
        match (self, other) {
            (a, b) if a == b || *b == Place::Same => Some(a.clone()),
            (Place::Same, other) => Some(other.clone()),
            (Place::Part(a), Place::Part(b)) if b.is_replicated() => Some(Place::Part(a.clone())),
            (Place::Part(a), Place::Part(b)) if a.is_replicated() => Some(Place::Part(b.clone())),
            _ => None,
        }
    }

    /// Whether a value of both places is one of a manual computation, is replicated, or has equal splits.
    fn agrees_with(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Part(a), Place::Part(b)) if a.is_replicated() && b.is_replicated() => true,
            (a, b) => a == b,
        }
    }
}

/// Returns the only operand.
pub(super) fn only(operands: &[Value]) -> Result<Value> {
    match operands {
        [operand] => Ok(operand.clone()),
        _ => Err(Error::invalid_argument("it takes one operand")),
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
