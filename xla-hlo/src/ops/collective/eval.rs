//! Evaluator of collectives on one device, and of the part of each device in a collective among several.

use super::super::checks;
use super::ragged::exchange_rows;
use super::slices::{SentSlice, place_slices, sent_slices};
use super::{AllGather, AllReduce, Collective, CollectiveDone, Participants};
use crate::eval::Evaluator;
use crate::ops::OpRules as _;
use crate::{ElementType, Error, Literal, Module, Result, Scalar, Shape};

/// Result of a collective that runs on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnOneDevice {
    /// The result is the first n operands, unchanged.
    PassedOn(usize),
    /// The result is zeros in the shapes of the first n operands: no device sends to this one.
    Zeros(usize),
    /// The result is operand 1, overwritten by these slices of operand 0; none if the device does not send to itself.
    Slices(Vec<SentSlice>),
    /// The result is operand 1, overwritten by rows of operand 0.
    Rows,
    /// The result is element 1 of operand 0, which is the result of the start operation.
    Done,
    /// The result is the number 0.
    Number,
}

impl Collective {
    /// Returns how the operation computes its result from operands of these shapes, in a module that runs on one
    /// device.
    ///
    /// Fails with [`Error::Unimplemented`] if the module declares more than one device, and with
    /// [`Error::InvalidArgument`] if the operation needs devices that the module does not declare.
    pub fn on_one_device(&self, module: &Module, operands: &[&Shape]) -> Result<OnOneDevice> {
        module.expect_one_device(self.opcode().name())?;
        let count = operands.len();
        match self {
            Collective::AllReduce(AllReduce { participants, .. })
            | Collective::AllGather(AllGather { participants, .. })
            | Collective::ReduceScatter { participants, .. }
            | Collective::AllToAll { participants, .. } => {
                self.expect_alone(participants)?;
                Ok(OnOneDevice::PassedOn(count))
            }
            Collective::CollectiveBroadcast { participants, has_dynamic_root } => {
                let data = count.saturating_sub(usize::from(*has_dynamic_root));
                let is_member = self.expect_alone(participants)?;
                Ok(if is_member { OnOneDevice::PassedOn(data) } else { OnOneDevice::Zeros(data) })
            }
            Collective::CollectiveReduce { participants, has_dynamic_root, .. } => {
                self.expect_alone(participants)?;
                Ok(OnOneDevice::PassedOn(count.saturating_sub(usize::from(*has_dynamic_root))))
            }
            Collective::RaggedAllToAll(participants) => {
                self.expect_alone(participants)?;
                Ok(OnOneDevice::Rows)
            }
            Collective::CollectivePermute(op) => {
                let (own, others): (Vec<&Vec<i64>>, _) =
                    op.pairs.iter().filter(|pair| pair.contains(&0)).partition(|pair| pair[..] == [0, 0]);
                let is_sent = !own.is_empty();
                if is_sent && !others.is_empty() {
                    let message = "collective-permute of slices by several pairs, to this device and to others";
                    return Err(Error::unimplemented(message));
                }
                match (operands, is_sent) {
                    ([input, _, places, _], true) if op.is_in_place() => {
                        Ok(OnOneDevice::Slices(sent_slices(op, input, places)?))
                    }
                    (_, false) if op.is_in_place() => Ok(OnOneDevice::Slices(Vec::new())),
                    (_, true) => Ok(OnOneDevice::PassedOn(count)),
                    (_, false) => Ok(OnOneDevice::Zeros(count)),
                }
            }
            Collective::Done(CollectiveDone::AllReduce) => Ok(OnOneDevice::PassedOn(count)),
            Collective::Done(CollectiveDone::AllGather | CollectiveDone::CollectivePermute) => Ok(OnOneDevice::Done),
            Collective::ReplicaId | Collective::PartitionId => Ok(OnOneDevice::Number),
        }
    }

    /// Checks that no other device is in a group with device 0. Returns whether device 0 is in a group at all.
    fn expect_alone(&self, participants: &Participants) -> Result<bool> {
        if participants.groups.is_everyone() {
            return Ok(true);
        }
        let groups = participants.groups.listed()?;
        let group = groups.iter().find(|group| group.contains(&0));
        if group.is_some_and(|group| group.len() > 1) {
            return Err(Error::invalid_argument(format!(
                "{} has a group of {} devices, but the module runs on one (its header names no replica_count or \
                 num_partitions above 1)",
                self.opcode(),
                group.map_or(0, Vec::len)
            )));
        }
        Ok(group.is_some())
    }

    /// Whether the result is a tuple even if there is only one array.
    pub fn returns_tuple(&self) -> bool {
        matches!(self, Collective::AllToAll { dimension: None, .. })
    }

    /// Whether the result is `(operands, results, state...)`, as for a start operation.
    pub fn returns_operands(&self) -> bool {
        match self {
            Collective::AllGather(op) => op.is_start,
            Collective::CollectivePermute(op) => op.is_start,
            Collective::AllReduce(_)
            | Collective::ReduceScatter { .. }
            | Collective::AllToAll { .. }
            | Collective::CollectiveBroadcast { .. }
            | Collective::CollectiveReduce { .. }
            | Collective::RaggedAllToAll(_)
            | Collective::Done(_)
            | Collective::ReplicaId
            | Collective::PartitionId => false,
        }
    }
}

pub(super) fn evaluate(
    op: &Collective,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let result = match ev.device() {
        Some(device) => match op {
            Collective::ReplicaId => return Ok(number(device.replica)),
            Collective::PartitionId => return Ok(number(device.partition)),
            Collective::Done(kind) => return done(*kind, operands),
            op => together(op, device.peers.exchange(ev.position()?, operands.clone())?),
        },
        None => match op.on_one_device(ev.module(), &operands.iter().map(Literal::shape).collect::<Vec<_>>())? {
            OnOneDevice::Number => return Ok(number(0)),
            OnOneDevice::Done => return done(CollectiveDone::AllGather, operands),
            OnOneDevice::PassedOn(count) => together(op, operands[..count].to_vec()),
            OnOneDevice::Zeros(count) => Literal::zeros_of(together(op, operands[..count].to_vec()).shape())?,
            OnOneDevice::Slices(slices) => place_slices(&slices, &operands, &operands)?,
            OnOneDevice::Rows => together(op, exchange_rows(std::slice::from_ref(&operands))?.remove(0)),
        },
    };
    check_size(op, &result, shape, ev.device().is_none())?;
    if !op.returns_operands() {
        return Ok(result);
    }
    let mut elements = vec![sent(op, operands)?, result];
    for state in shape.as_tuple().and_then(|elements| elements.get(2..)).unwrap_or_default() {
        elements.push(Literal::zeros_of(state)?);
    }
    Ok(Literal::tuple(elements))
}

/// Checks the result shape, since a program may have shapes meant for another number of devices.
fn check_size(op: &Collective, result: &Literal, shape: &Shape, is_alone: bool) -> Result<()> {
    let expected = if op.returns_operands() { shape.subshape(&[1]) } else { Some(shape) };
    if expected.is_some_and(|expected| expected.compatible(result.shape())) {
        return Ok(());
    }
    let said = shape.without_layout();
    let devices = if is_alone { "on one device" } else { "among these devices" };
    Err(Error::invalid_argument(format!("{} has shape {} {devices}, not {said}", op.opcode(), result.shape())))
}

/// Returns a single array as it is, unless the operation always returns a tuple; otherwise a tuple of the arrays.
fn together(op: &Collective, mut arrays: Vec<Literal>) -> Literal {
    if arrays.len() == 1 && !op.returns_tuple() { arrays.remove(0) } else { Literal::tuple(arrays) }
}

/// Returns the operands as element 0 of a start operation's result.
fn sent(op: &Collective, operands: Vec<Literal>) -> Result<Literal> {
    match op {
        Collective::CollectivePermute(permute) if permute.is_in_place() => first(operands),
        op => Ok(together(op, operands)),
    }
}

/// Returns the result of the start operation.
fn done(kind: CollectiveDone, operands: Vec<Literal>) -> Result<Literal> {
    let start = first(operands)?;
    match kind {
        CollectiveDone::AllReduce => Ok(start),
        CollectiveDone::AllGather | CollectiveDone::CollectivePermute => {
            let result = start.into_elements().into_iter().nth(1);
            result.ok_or_else(|| Error::internal("the start operation has no result"))
        }
    }
}

fn first(operands: Vec<Literal>) -> Result<Literal> {
    operands.into_iter().next().ok_or_else(checks::missing_operand)
}

fn number(id: usize) -> Literal {
    Literal::scalar(ElementType::U32, Scalar::Unsigned(id as u64))
}
