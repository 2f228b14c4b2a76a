//! Collectives among devices that have met: one function for each kind of exchange.
//!
//! A [`Row`] holds the arrays of one device. Rows are in group order, and so are reductions and concatenations. Results
//! therefore do not depend on the order in which devices arrive.

use super::super::checks::{self, ensure};
use super::super::combiner::Combiner;
use super::ragged::exchange_rows;
use super::slices::{SentSlice, place_slices, slices_of_pair};
use super::{AllGather, AllReduce, Collective, CollectivePermute, Meeting};
use crate::eval::Evaluator;
use crate::ops::OpRules as _;
use crate::{ArrayShape, CompId, Error, Literal, Result};

/// Arrays of one device: its operands, or its results.
type Row = Vec<Literal>;

impl Collective {
    /// Executes the operation among the devices of a [meeting](Collective::meeting). `rows` holds the operands of each
    /// member. Returns the results of each member, one for each array. `evaluator` runs reducers.
    ///
    /// The result of a collective-reduce, which only the root may use, is the same on all members. Fails if the shapes
    /// of the members' operands differ.
    pub fn exchange(
        &self,
        evaluator: &mut Evaluator<'_>,
        meeting: &Meeting,
        rows: &[Vec<Literal>],
    ) -> Result<Vec<Vec<Literal>>> {
        for (row, member) in rows.iter().zip(&meeting.members) {
            for (i, (operand, first)) in row.iter().zip(&rows[0]).enumerate() {
                ensure!(
                    operand.shape() == first.shape(),
                    "operand {i} is {} on device {member}, but {} on device {}",
                    operand.shape(),
                    first.shape(),
                    meeting.members[0]
                );
            }
        }
        exchange(self, evaluator, meeting, rows)
    }
}

fn exchange(op: &Collective, ev: &mut Evaluator<'_>, meeting: &Meeting, rows: &[Row]) -> Result<Vec<Row>> {
    let Meeting { members, is_group } = meeting;
    match op {
        Collective::CollectivePermute(op) => return permute(op, ev, members, rows),
        Collective::CollectiveBroadcast { has_dynamic_root, .. }
        | Collective::CollectiveReduce { has_dynamic_root, .. }
            if !*is_group =>
        {
            return rows.iter().map(|row| zeros(&row[..row.len() - usize::from(*has_dynamic_root)])).collect();
        }
        op => ensure!(*is_group, "{} is executed by device {}, which is in no group", op.opcode(), members[0]),
    }
    let count = members.len();
    match op {
        Collective::AllReduce(AllReduce { computation, .. }) => Ok(vec![reduced(ev, *computation, rows)?; count]),
        Collective::CollectiveReduce { computation, has_dynamic_root, .. } => {
            let (_, data) = rooted(*has_dynamic_root, rows)?;
            Ok(vec![reduced(ev, *computation, &data)?; count])
        }
        Collective::CollectiveBroadcast { has_dynamic_root, .. } => {
            let (root, data) = rooted(*has_dynamic_root, rows)?;
            Ok(vec![data[root].clone(); count])
        }
        Collective::ReduceScatter { computation, dimension, .. } => {
            let mut results = vec![Row::new(); count];
            for sum in reduced(ev, *computation, rows)? {
                let parts = cut(&sum, *dimension, count)?;
                results.iter_mut().zip(parts).for_each(|(row, part)| row.push(part));
            }
            Ok(results)
        }
        Collective::AllGather(AllGather { dimension, .. }) => {
            let columns = transposed(rows.to_vec());
            let gathered = columns.iter().map(|parts| concatenated(parts, *dimension)).collect::<Result<Row>>()?;
            Ok(vec![gathered; count])
        }
        Collective::AllToAll { dimension: Some(dimension), .. } => {
            let parts = rows.iter().map(|row| cut(array(row, 0)?, *dimension, count)).collect::<Result<_>>()?;
            transposed(parts).iter().map(|parts| Ok(vec![concatenated(parts, *dimension)?])).collect()
        }
        Collective::AllToAll { dimension: None, .. } => {
            let parts = rows[0].len();
            ensure!(parts == count, "all-to-all has {parts} parts in a group of {count} devices");
            Ok(transposed(rows.to_vec()))
        }
        Collective::RaggedAllToAll(_) => exchange_rows(rows),
        Collective::CollectivePermute(_) | Collective::Done(_) | Collective::ReplicaId | Collective::PartitionId => {
            Err(Error::internal(format!("{} is not an exchange in groups", op.opcode())))
        }
    }
}

/// Reduces each array over the members, from the first member to the last. Values keep the precision of the reduction
/// until the end. The array of a single member is returned unchanged, as on one device.
fn reduced(ev: &mut Evaluator<'_>, computation: CompId, rows: &[Row]) -> Result<Row> {
    transposed(rows.to_vec())
        .iter()
        .map(|parts| {
            if let [only] = &parts[..] {
                return Ok(only.clone());
            }
            let shape = array(parts, 0)?.array_shape();
            let mut combiner = Combiner::new(ev, computation, &[shape.element_type()])?;
            let work = combiner.work().map(|work| work.saturating_mul(parts.len()));
            let mut results = [Literal::zeros(shape)?];
            ev.fill(&mut results, work, &mut combiner, |ev, combiner, mut chunk| {
                for i in chunk.range.clone() {
                    let mut sum = combiner.accumulators(&[parts[0].get(i)])[0];
                    for part in &parts[1..] {
                        sum = combiner.step(ev, sum, part.get(i))?;
                    }
                    chunk.set(i, &[sum]);
                }
                Ok(())
            })?;
            let [result] = results;
            Ok(result)
        })
        .collect()
}

/// Returns the number of the root in the group, and the rows without the operand that selects it.
fn rooted(has_dynamic_root: bool, rows: &[Row]) -> Result<(usize, Vec<Row>)> {
    if !has_dynamic_root {
        return Ok((0, rows.to_vec()));
    }
    let mut data = rows.to_vec();
    let selected: Option<Vec<Literal>> = data.iter_mut().map(Vec::pop).collect();
    let selected = selected.ok_or_else(checks::missing_operand)?;
    let numbers: Vec<i128> = selected.iter().map(|root| root.get(0).as_i128().unwrap_or(-1)).collect();
    let root = numbers[0];
    ensure!(numbers.iter().all(|&n| n == root), "the members of a group select different roots: {numbers:?}");
    match usize::try_from(root) {
        Ok(root) if root < rows.len() => Ok((root, data)),
        _ => Err(Error::invalid_argument(format!("the root {root} is not in its group of {} devices", rows.len()))),
    }
}

/// Sends arrays, or slices of them, along the pairs among `members`.
fn permute(op: &CollectivePermute, ev: &Evaluator<'_>, members: &[usize], rows: &[Row]) -> Result<Vec<Row>> {
    let pairs = op.pairs_among(ev.module().attributes(), members)?;
    if op.is_in_place() {
        return permute_slices(op, &pairs, rows);
    }
    let mut results = rows.iter().map(|row| zeros(row)).collect::<Result<Vec<Row>>>()?;
    for (from, to) in pairs {
        results[to].clone_from(&rows[from]);
    }
    Ok(results)
}

/// Sends slices of operand 0 over slices of the receiver's operand 1. The sender's operand 2 selects the slices that
/// are read, the receiver's operand 3 the slices that are written.
fn permute_slices(op: &CollectivePermute, pairs: &[(usize, usize)], rows: &[Row]) -> Result<Vec<Row>> {
    let mut results: Vec<Row> = rows.iter().map(|row| Ok(vec![array(row, 1)?.clone()])).collect::<Result<_>>()?;
    for (i, &(from, to)) in pairs.iter().enumerate() {
        let slices = op.sent_slices(array(&rows[from], 0)?.shape(), array(&rows[from], 2)?.shape())?;
        let own: Vec<SentSlice> = slices_of_pair(pairs, i, &slices).map(|slice| slices[slice].clone()).collect();
        let mut receiver = rows[to].clone();
        receiver[1] = results[to].remove(0);
        results[to].push(place_slices(&own, &rows[from], &receiver)?);
    }
    Ok(results)
}

/// Cuts an array into `count` equal parts along a dimension.
fn cut(whole: &Literal, dimension: usize, count: usize) -> Result<Row> {
    let shape = whole.array_shape();
    let size = shape.dims()[dimension];
    ensure!(size.is_multiple_of(count), "dimension {dimension} of {shape} cannot be cut into {count} parts");
    let mut dims = shape.dims().to_vec();
    dims[dimension] = size / count;
    let shape = ArrayShape::new(shape.element_type(), dims);
    let mut parts = (0..count).map(|_| Literal::zeros(&shape)).collect::<Result<Row>>()?;
    if whole.byte_len() > 0 {
        let run = run_bytes(&shape, dimension);
        for (i, part) in parts.iter_mut().enumerate() {
            let runs = whole.bytes().chunks(run).skip(i).step_by(count);
            part.bytes_mut().chunks_mut(run).zip(runs).for_each(|(to, from)| to.copy_from_slice(from));
        }
    }
    Ok(parts)
}

/// Concatenates arrays of the same shape along a dimension; the inverse of [`cut`].
fn concatenated(parts: &[Literal], dimension: usize) -> Result<Literal> {
    let shape = array(parts, 0)?.array_shape();
    let mut dims = shape.dims().to_vec();
    dims[dimension] = dims[dimension].saturating_mul(parts.len());
    let mut whole = Literal::zeros(&ArrayShape::new(shape.element_type(), dims))?;
    if whole.byte_len() > 0 {
        let run = run_bytes(shape, dimension);
        for (i, part) in parts.iter().enumerate() {
            let runs = whole.bytes_mut().chunks_mut(run).skip(i).step_by(parts.len());
            runs.zip(part.bytes().chunks(run)).for_each(|(to, from)| to.copy_from_slice(from));
        }
    }
    Ok(whole)
}

/// Returns the number of contiguous bytes of an array that have equal coordinates in front of `dimension`.
fn run_bytes(shape: &ArrayShape, dimension: usize) -> usize {
    shape.dims()[dimension..].iter().product::<usize>() * shape.element_type().byte_width()
}

/// Returns item `j` of list `i` as item `i` of list `j`, for lists of equal length.
fn transposed(rows: Vec<Row>) -> Vec<Row> {
    let mut columns: Vec<Row> = vec![Vec::with_capacity(rows.len()); rows.first().map_or(0, Vec::len)];
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, item)| column.push(item));
    }
    columns
}

fn array(row: &[Literal], i: usize) -> Result<&Literal> {
    row.get(i).ok_or_else(checks::missing_operand)
}

fn zeros(row: &[Literal]) -> Result<Row> {
    row.iter().map(|literal| Literal::zeros_of(literal.shape())).collect()
}
