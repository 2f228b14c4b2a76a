//! Gathers: split values become whole where their splits cannot be kept, and every device computes the whole result.

use xla_hlo::ops::collective::{AllGather, Participants, ReplicaGroups};
use xla_hlo::ops::{Collective, Transpose};
use xla_hlo::{Error, InstrId, Result, Shape};

use super::place::{Place, Split, Value};
use super::rewrite::Rewriter;
use crate::rewrite::builder::Inserter;

impl Rewriter<'_> {
    /// Returns the operands of an operation as whole values.
    pub(super) fn all_whole(&mut self, operands: &[Value], shapes: &[&Shape]) -> Result<Vec<Value>> {
        let whole = |(operand, shape): (&Value, &&Shape)| {
            let places = self.whole_places(shape, &operand.places)?;
            Ok(Value { id: self.placed(operand, shape, &places)?, places: places.into() })
        };
        operands.iter().zip(shapes).map(whole).collect()
    }

    /// Returns the places of a value of a global shape that each device has as a whole.
    pub(super) fn whole_places(&self, shape: &Shape, places: &[Place]) -> Result<Vec<Place>> {
        let place = |((_, leaf), place): ((_, &Shape), &Place)| match (place, leaf.as_array()) {
            (Place::Part(split), Some(array)) if !split.is_replicated() => Ok(Place::Part(self.split(None, array)?)),
            _ => Ok(place.clone()),
        };
        shape.leaves().into_iter().zip(places).map(place).collect()
    }

    /// Emits the whole array from the parts of all devices. Partial values are reduced.
    pub(super) fn gathered(&mut self, part: InstrId, split: &Split) -> Result<InstrId> {
        let (replicas, partitions) = (self.replicas, self.devices);
        let operands = split.tiles.grid.operands;
        self.count(if operands > 1 { 3 * split.tiles.grid.count() } else { 5 })?;
        split.gather(&mut self.inserter(), part, replicas, partitions)
    }
}

impl Split {
    /// Emits an all-gather of the parts, in the order of their numbers.
    fn gather(&self, at: &mut Inserter<'_>, part: InstrId, replicas: usize, partitions: usize) -> Result<InstrId> {
        let grid = &self.tiles.grid;
        let dims = at.dims(part);
        if !at.array(part)?.is_static() {
            return Err(Error::unimplemented("parts of an array of dynamic size are gathered"));
        }
        let (count, groups) = (grid.count(), self.groups(replicas, partitions)?);
        let ty = at.element_type(part)?;
        let all_gather = |at: &mut Inserter<'_>, part: InstrId, dimension: usize| {
            let mut dims = at.dims(part);
            dims[dimension] *= count;
            let participants = Participants {
                groups: ReplicaGroups::Listed(groups.clone()),
                channel_id: Some(1),
                constrain_layout: false,
                use_global_device_ids: true,
            };
            let op = Collective::AllGather(AllGather { participants, dimension, is_start: false });
            at.add_as(op, Shape::array(ty, dims), [part])
        };
        if let Some(dimension) = grid.dims.iter().position(|&parts| parts == count) {
            return all_gather(at, part, dimension);
        }
        let row = at.reshape(part, &[&[1], &dims[..]].concat())?;
        let rows = all_gather(at, row, 0)?;
        if grid.operands == 1 {
            return assembled(at, rows, &grid.dims, &dims);
        }
        let part_of = |number: usize| {
            let row = at.slice(rows, 0, number, number + 1)?;
            at.reshape(row, &dims)
        };
        let parts = (0..count).map(part_of).collect::<Result<_>>()?;
        grid.whole(at, parts)
    }

    /// Returns groups of devices. Each group has all parts, by number.
    fn groups(&self, replicas: usize, partitions: usize) -> Result<Vec<Vec<i64>>> {
        let mut owners = vec![Vec::new(); self.tiles.grid.count()];
        self.tiles.of_partition.iter().enumerate().for_each(|(partition, &part)| owners[part].push(partition));
        let copies = owners.first().map_or(0, Vec::len);
        if owners.iter().any(|owners| owners.len() != copies) {
            return Err(Error::unimplemented("parts of an array are on different numbers of devices"));
        }
        let device = |replica: usize, partition: usize| (replica * partitions + partition) as i64;
        let group = |replica: usize, copy: usize| owners.iter().map(|of| device(replica, of[copy])).collect();
        let all = (0..replicas).flat_map(|replica| (0..copies).map(move |copy| (replica, copy)));
        Ok(all.map(|(replica, copy)| group(replica, copy)).collect())
    }
}

/// Emits an array from its equal parts, which are rows in row-major order of the grid.
fn assembled(at: &mut Inserter<'_>, rows: InstrId, grid: &[usize], part: &[usize]) -> Result<InstrId> {
    let by_grid = at.reshape(rows, &[grid, part].concat())?;
    let rank = grid.len();
    let permutation = (0..rank).flat_map(|d| [d, rank + d]).collect();
    let in_order = at.add(Transpose { permutation }, [by_grid])?;
    let whole: Vec<usize> = grid.iter().zip(part).map(|(parts, size)| parts * size).collect();
    at.reshape(in_order, &whole)
}
