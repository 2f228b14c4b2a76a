//! Communication: partial values are reduced, and split values are gathered where their splits cannot be kept.

use std::cmp::Reverse;

use xla_hlo::ops::collective::{AllGather, AllReduce, Participants, ReplicaGroups};
use xla_hlo::ops::{Collective, Transpose};
use xla_hlo::sdy::Reduction;
use xla_hlo::{ArrayShape, CompId, ElementType, Error, InstrId, Result, Scalar, Shape};

use super::place::{Place, Split, Value, of_partition};
use super::rewrite::{Rewriter, is_any_split};
use crate::rewrite::builder::Inserter;

/// Maximum number of operands of an operation that tries a plan for each of them. The operands of larger operations,
/// such as a concatenate, are interchangeable, so one plan for each split suffices.
const MAX_SINGLE_OPERANDS: usize = 8;

/// Operands of an operation that keep their parts.
#[derive(Clone, Copy)]
enum Kept {
    /// All operands that have the places of an operand.
    Equal(usize),
    /// One operand.
    Single(usize),
}

/// Returns the operands whose places no earlier one has.
fn first_of_each(operands: Vec<usize>, places: &[Vec<Place>]) -> Vec<usize> {
    let mut first: Vec<usize> = Vec::new();
    for operand in operands {
        if first.iter().all(|&other| places[other] != places[operand]) {
            first.push(operand);
        }
    }
    first
}

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

    /// Returns the operands of an operation, with partial values reduced. If the operation can then keep the parts of
    /// one of them, at best of the largest, operands with other parts are whole values, otherwise all are.
    pub(super) fn gathered_operands(
        &mut self,
        computation: CompId,
        id: InstrId,
        operands: &[Value],
    ) -> Result<Vec<Value>> {
        let shapes = self.source[computation].operand_shapes(id);
        let reduced: Vec<Vec<Place>> =
            operands.iter().map(|operand| self.without_partial_values(&operand.places)).collect();
        let size = |&i: &usize| shapes[i].as_array().map_or(0, ArrayShape::element_count);
        let mut split: Vec<usize> = (0..operands.len()).filter(|&i| is_any_split(&operands[i..=i])).collect();
        split.sort_by_key(|i| Reverse(size(i)));
        if operands.len() > MAX_SINGLE_OPERANDS {
            split = first_of_each(split, &reduced);
        }
        let is_possible = |rewriter: &Self, plan: &[Vec<Place>]| {
            let placed = operands.iter().zip(plan).map(|(operand, places)| operand.at(places.clone()));
            rewriter.rule(computation, id, &placed.collect::<Vec<Value>>()).is_ok()
        };
        let mut found = is_possible(self, &reduced).then(|| reduced.clone());
        // Plans are created one at a time: each has the places of all operands.
        let kept = split.into_iter().flat_map(|kept| [Kept::Equal(kept), Kept::Single(kept)]);
        for kept in kept {
            if found.is_some() {
                break;
            }
            let plan = self.keeping(&shapes, &reduced, kept)?;
            found = is_possible(self, &plan).then_some(plan);
        }
        let Some(plan) = found else { return self.all_whole(operands, &shapes) };
        let placed = |((operand, shape), places): ((&Value, &&Shape), Vec<Place>)| {
            Ok(Value { id: self.placed(operand, shape, &places)?, places: places.into() })
        };
        operands.iter().zip(&shapes).zip(plan).map(placed).collect()
    }

    /// Returns the places of the operands: some keep their parts, the others are whole values.
    fn keeping(&mut self, shapes: &[&Shape], places: &[Vec<Place>], kept: Kept) -> Result<Vec<Vec<Place>>> {
        let is_kept = |i: usize| match kept {
            Kept::Equal(operand) => places[i] == places[operand],
            Kept::Single(operand) => i == operand,
        };
        let of = |(i, (shape, own)): (usize, (&&Shape, &Vec<Place>))| match is_kept(i) {
            true => Ok(own.clone()),
            false => self.whole_places(shape, own),
        };
        shapes.iter().zip(places).enumerate().map(of).collect()
    }

    /// Returns places with the splits that partial values have after they are reduced, if values may be gathered.
    pub(super) fn without_partial_values(&self, places: &[Place]) -> Vec<Place> {
        let place = |place: &Place| match place {
            Place::Part(split) if self.gathers && split.is_unreduced() => Place::Part(split.reduced()),
            place => place.clone(),
        };
        places.iter().map(place).collect()
    }

    /// Emits the part that the device has in another split: partial values are reduced; if the parts still differ, they
    /// are gathered, and each device takes its part of the whole array.
    pub(super) fn exchanged(&mut self, part: InstrId, own: &Split, wanted: &Split) -> Result<InstrId> {
        if own == wanted || own.is_replicated() && wanted.is_replicated() {
            return Ok(part);
        }
        if own.is_replicated() {
            return wanted.part_of_whole(&mut self.inserter(), part);
        }
        if !self.inserter().array(part)?.is_static() {
            return Err(Error::unimplemented("parts of an array of dynamic size are exchanged"));
        }
        let (replicas, partitions) = (self.replicas, self.devices);
        self.count(5)?;
        if own.is_unreduced() {
            let part = own.all_reduce(&mut self.inserter(), part, replicas, partitions)?;
            return self.exchanged(part, &own.reduced(), wanted);
        }
        let whole = own.gather(&mut self.inserter(), part, replicas, partitions)?;
        match wanted.is_replicated() {
            true => Ok(whole),
            false => wanted.part_of_whole(&mut self.inserter(), whole),
        }
    }
}

impl Split {
    /// Emits the part that the device has of a whole value. Of the partial values of a sum, the first is the value, and
    /// the others are zero; the partial values of a maximum or minimum are equal.
    pub(super) fn part_of_whole(&self, at: &mut Inserter<'_>, whole: InstrId) -> Result<InstrId> {
        if !self.is_unreduced() {
            return self.part_of_replicated(at, whole);
        }
        let (grid, reduced) = (&self.tiles.grid, self.reduced());
        let part = if reduced.is_replicated() { whole } else { reduced.part_of_replicated(at, whole)? };
        if grid.reduction != Reduction::Sum {
            return Ok(part);
        }
        let array = at.array(part)?.clone();
        if !array.is_static() {
            return Err(Error::unimplemented("an array of dynamic size becomes partial values"));
        }
        let is_first: Vec<Scalar> =
            self.tiles.of_partition.iter().map(|part| Scalar::Pred(part % grid.operands == 0)).collect();
        let partition = at.add(Collective::PartitionId, [])?;
        let is_first = of_partition(at, partition, ElementType::Pred, &is_first)?;
        let (is_first, zeros) = (at.broadcast(is_first, array.dims(), &[])?, at.zeros(&array)?);
        at.select(is_first, part, zeros)
    }

    /// Emits an all-gather of the parts, in the order of their numbers.
    fn gather(&self, at: &mut Inserter<'_>, part: InstrId, replicas: usize, partitions: usize) -> Result<InstrId> {
        let grid = &self.tiles.grid;
        let dims = at.dims(part);
        let (count, groups) = (grid.count(), self.groups(replicas, partitions, grid.count())?);
        let ty = at.element_type(part)?;
        let all_gather = |at: &mut Inserter<'_>, part: InstrId, dimension: usize| {
            let mut dims = at.dims(part);
            dims[dimension] *= count;
            let op = AllGather { participants: participants(groups.clone()), dimension, is_start: false };
            let op = Collective::AllGather(op);
            at.add_as(op, Shape::array(ty, dims), [part])
        };
        if let Some(dimension) = grid.dims.iter().position(|&parts| parts == count) {
            return all_gather(at, part, dimension);
        }
        let row = at.reshape(part, &[&[1], &dims[..]].concat())?;
        let rows = all_gather(at, row, 0)?;
        assembled(at, rows, &grid.dims, &dims)
    }

    /// Emits an all-reduce of the partial values of each part, in the order of their numbers.
    fn all_reduce(&self, at: &mut Inserter<'_>, part: InstrId, replicas: usize, partitions: usize) -> Result<InstrId> {
        let grid = &self.tiles.grid;
        let (shape, ty) = (at.shape(part).clone(), at.element_type(part)?);
        let participants = participants(self.groups(replicas, partitions, grid.operands)?);
        let computation = at.combiner(grid.operator(ty), ty);
        let op = Collective::AllReduce(AllReduce { participants, computation, is_start: false });
        at.add_as(op, shape, [part])
    }

    /// Returns groups of devices. Each group has `length` consecutive parts, by number.
    fn groups(&self, replicas: usize, partitions: usize, length: usize) -> Result<Vec<Vec<i64>>> {
        let mut owners = vec![Vec::new(); self.tiles.grid.count()];
        self.tiles.of_partition.iter().enumerate().for_each(|(partition, &part)| owners[part].push(partition));
        let copies = owners.first().map_or(0, Vec::len);
        if owners.iter().any(|owners| owners.len() != copies) {
            return Err(Error::unimplemented("parts of an array are on different numbers of devices"));
        }
        let device = |replica: usize, partition: usize| (replica * partitions + partition) as i64;
        let group = |parts: &[Vec<usize>], replica: usize, copy: usize| -> Vec<i64> {
            parts.iter().map(|of| device(replica, of[copy])).collect()
        };
        let all = (0..replicas).flat_map(|replica| (0..copies).map(move |copy| (replica, copy)));
        let groups = all.flat_map(|(replica, copy)| owners.chunks(length).map(move |parts| (parts, replica, copy)));
        Ok(groups.map(|(parts, replica, copy)| group(parts, replica, copy)).collect())
    }
}

/// Returns the participants of a collective among groups of devices.
fn participants(groups: Vec<Vec<i64>>) -> Participants {
    Participants {
        groups: ReplicaGroups::Listed(groups),
        channel_id: Some(1),
        constrain_layout: false,
        use_global_device_ids: true,
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
