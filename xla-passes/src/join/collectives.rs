//! Collectives as operations among lanes.

use std::rc::Rc;

use xla_hlo::ops::{Collective, Map, collective::AllGather, collective::AllReduce, collective::CollectivePermute};
use xla_hlo::{CompId, ElementType, Error, InstrId, Op, Result};

use super::lanes::{Lanes, Value};
use super::rewrite::Rewriter;
use crate::rewrite::builder::Inserter;

/// Arrays of one lane, by operand.
type Row = Vec<InstrId>;

impl Rewriter<'_> {
    /// Emits a collective among the lanes. Returns its results.
    pub(super) fn collective(
        &mut self,
        at: CompId,
        op: &Collective,
        operands: &[Value],
        lanes: &Rc<Lanes>,
    ) -> Result<Value> {
        if matches!(op, Collective::ReplicaId | Collective::PartitionId) {
            return self.number(at, op, lanes);
        }
        let row = |lane: usize| operands.iter().map(|operand| operand.ids[lane]).collect();
        let rows: Vec<Row> = (0..lanes.devices.len()).map(row).collect();
        let results = match op {
            Collective::CollectivePermute(op) if !op.is_start && !op.is_in_place() => {
                self.permuted(op, lanes, &rows)?
            }
            _ => self.in_groups(at, op, lanes, &rows)?,
        };
        let has_root = matches!(op, Collective::CollectiveReduce { has_dynamic_root: true, .. });
        let arrays = operands.len() - usize::from(has_root);
        let mut columns = Vec::with_capacity(results.len());
        for (row, result) in rows.iter().zip(results) {
            let mut at = Inserter::new(&mut self.target, at);
            // A lane that receives nothing gets zeros.
            let zeros = |&x: &InstrId| {
                let shape = at.array(x)?.clone();
                at.zeros(&shape)
            };
            columns.push(result.map_or_else(|| row[..arrays].iter().map(zeros).collect(), Ok)?);
        }
        let ids = if op.returns_tuple() {
            let mut at = Inserter::new(&mut self.target, at);
            columns.iter().map(|column| at.tuple(column)).collect::<Result<_>>()?
        } else {
            self.packed(at, columns)?
        };
        Ok(Value { ids, lanes: lanes.clone() })
    }

    /// Emits a collective whose devices operate in groups. Returns the results per lane.
    fn in_groups(&mut self, at: CompId, op: &Collective, lanes: &Lanes, rows: &[Row]) -> Result<Vec<Option<Row>>> {
        let own = |group: &[usize]| -> Vec<Row> { group.iter().map(|&lane| rows[lane].clone()).collect() };
        let count = rows.first().map_or(0, Vec::len);
        match op {
            Collective::AllReduce(AllReduce { is_start: false, computation, .. })
            | Collective::CollectiveReduce { computation, .. } => {
                let computation = self.plain(*computation)?;
                let root = matches!(op, Collective::CollectiveReduce { has_dynamic_root: true, .. });
                let arrays = count - usize::from(root);
                self.by_group(at, op, lanes, |at, group| {
                    let sums =
                        (0..arrays).map(|i| reduced(at, computation, &own(group), i)).collect::<Result<Row>>()?;
                    Ok(vec![sums; group.len()])
                })
            }
            Collective::ReduceScatter { computation, dimension, .. } => {
                let computation = self.plain(*computation)?;
                self.by_group(at, op, lanes, |at, group| {
                    let mut parts = vec![Vec::new(); group.len()];
                    for i in 0..count {
                        let sum = reduced(at, computation, &own(group), i)?;
                        let cut = cut(at, sum, *dimension, group.len())?;
                        parts.iter_mut().zip(cut).for_each(|(parts, part)| parts.push(part));
                    }
                    Ok(parts)
                })
            }
            Collective::AllGather(AllGather { dimension, is_start: false, .. }) => {
                self.by_group(at, op, lanes, |at, group| {
                    let gathered = (0..count).map(|i| {
                        let all: Row = group.iter().map(|&lane| rows[lane][i]).collect();
                        if let [one] = all[..] { Ok(one) } else { at.concatenate(&all, *dimension) }
                    });
                    let gathered = gathered.collect::<Result<Row>>()?;
                    Ok(vec![gathered; group.len()])
                })
            }
            Collective::AllToAll { dimension, .. } => {
                self.by_group(at, op, lanes, |at, group| exchanged(at, *dimension, &own(group)))
            }
            Collective::CollectiveBroadcast { has_dynamic_root: false, .. } => {
                self.by_group(at, op, lanes, |_, group| Ok(vec![rows[group[0]].clone(); group.len()]))
            }
            _ => Err(Error::unimplemented(format!(
                "{} among several devices is not implemented",
                Op::from(op.clone()).opcode()
            ))),
        }
    }

    /// Returns the replica id or partition id of each lane.
    fn number(&mut self, at: CompId, op: &Collective, lanes: &Rc<Lanes>) -> Result<Value> {
        let partitions = self.source.attributes().num_partitions.max(1) as i64;
        let is_partition = matches!(op, Collective::PartitionId);
        if is_partition && partitions > 1 && lanes.outer.is_none() && !self.is_per_device {
            return Err(Error::unimplemented(
                "partition-id outside of manual computations is not supported, since values there are global",
            ));
        }
        let number = |device: i64| if is_partition { device % partitions } else { device / partitions };
        let mut at = Inserter::new(&mut self.target, at);
        let ids = lanes.devices.iter().map(|&device| at.integer(ElementType::U32, number(device)));
        Ok(Value { ids: ids.collect::<Result<_>>()?, lanes: lanes.clone() })
    }

    /// Emits the results of each group. Returns `None` for lanes in no group.
    fn by_group(
        &mut self,
        at: CompId,
        op: &Collective,
        lanes: &Lanes,
        result: impl Fn(&mut Inserter<'_>, &[usize]) -> Result<Vec<Row>>,
    ) -> Result<Vec<Option<Row>>> {
        let groups = op.device_groups(self.source.attributes())?;
        let mut at = Inserter::new(&mut self.target, at);
        let mut results = vec![None; lanes.devices.len()];
        for group in groups {
            let members = group.iter().map(|device| lanes.devices.iter().position(|lane| lane == device));
            let members: Vec<Option<usize>> = members.collect();
            if members.iter().all(Option::is_none) {
                // The group consists of devices that lanes represent along other axes.
                continue;
            }
            let members: Option<Vec<usize>> = members.into_iter().collect();
            let members = members.ok_or_else(|| {
                Error::unimplemented(
                    "a group of the collective contains devices without values of their own at this point",
                )
            })?;
            for (&lane, row) in members.iter().zip(result(&mut at, &members)?) {
                results[lane] = Some(row);
            }
        }
        Ok(results)
    }

    fn permuted(&mut self, op: &CollectivePermute, lanes: &Lanes, rows: &[Row]) -> Result<Vec<Option<Row>>> {
        let mut results = vec![None; lanes.devices.len()];
        let lane = |device: i64| lanes.devices.iter().position(|&lane| lane == device);
        for (from, to) in op.device_pairs(self.source.attributes())? {
            match (lane(from), lane(to)) {
                (Some(from), Some(to)) => results[to] = Some(rows[from].clone()),
                (None, None) => {}
                _ => {
                    return Err(Error::unimplemented(
                        "a source-target pair contains a device without values of its own at this point",
                    ));
                }
            }
        }
        Ok(results)
    }
}

/// Reduces operand `number` of all members sequentially.
fn reduced(at: &mut Inserter<'_>, computation: CompId, members: &[Row], number: usize) -> Result<InstrId> {
    let mut arrays = members.iter().map(|row| row[number]);
    let first = arrays.next().ok_or_else(|| Error::internal("a group of a collective has no members"))?;
    let dimensions: Vec<usize> = (0..at.array(first)?.rank()).collect();
    arrays.try_fold(first, |sum, next| at.add(Map { dimensions: dimensions.clone(), computation }, [sum, next]))
}

/// Cuts an array into equal parts.
fn cut(at: &mut Inserter<'_>, x: InstrId, dimension: usize, count: usize) -> Result<Row> {
    let size = at.dims(x)[dimension] / count;
    (0..count).map(|number| at.slice(x, dimension, number * size, (number + 1) * size)).collect()
}

/// Returns the results of an all-to-all, by member.
fn exchanged(at: &mut Inserter<'_>, dimension: Option<usize>, members: &[Row]) -> Result<Vec<Row>> {
    let Some(dimension) = dimension else {
        // Operand `i` of each member is sent to member `i`.
        return Ok((0..members.len()).map(|i| members.iter().map(|row| row[i]).collect()).collect());
    };
    let mut results = vec![Vec::new(); members.len()];
    for operand in 0..members[0].len() {
        let parts = members.iter().map(|row| cut(at, row[operand], dimension, members.len()));
        let parts: Vec<Row> = parts.collect::<Result<_>>()?;
        for (member, result) in results.iter_mut().enumerate() {
            let own: Row = parts.iter().map(|parts| parts[member]).collect();
            result.push(if let [one] = own[..] { one } else { at.concatenate(&own, dimension)? });
        }
    }
    Ok(results)
}
