//! Plan of a device for a collective instruction.

use std::sync::Arc;

use xla_hlo::ops::Collective;
use xla_hlo::ops::collective::Meeting;
use xla_hlo::{ArrayShape, Error, Literal, Result};

use super::gathering::Gathering;
use super::instruction::{ArrayForm, Instruction};
use super::lower::{Lowered, lower};
use crate::cancel::CancelToken;
use crate::collective::{CollectiveCall, CollectiveRun, InstructionKey, Source, Target};
use crate::workers::blocking;

/// Group of a device for a collective instruction, and the operation that the group executes.
#[derive(Debug)]
pub(crate) struct MemberPlan {
    pub instruction: Arc<InstructionKey>,
    pub meeting: Meeting,
    devices: Arc<[usize]>,
    /// Position of the device in the group.
    pub rank: usize,
    /// Operation of the engine.
    pub lowered: std::result::Result<Lowered, Gathering>,
    /// Shapes of the results' arrays.
    results: Vec<ArrayShape>,
    /// Whether the arrays are the elements of one result.
    is_tuple: bool,
}

impl MemberPlan {
    /// Derives the plan of a device.
    pub fn new(cx: &Instruction<'_>, device: usize, form: ArrayForm<'_>) -> Result<MemberPlan> {
        let meeting = cx.op.meeting(cx.module.attributes(), device)?;
        let rank = meeting.members.iter().position(|&member| member == device);
        let rank = rank.ok_or_else(|| Error::internal("a device is not a member of its own group"))?;
        // Names of instructions are unique only in their computation.
        let name = format!("{} of {}", cx.computation[cx.id].name(), cx.computation.name());
        let arrays = cx.arrays(form);
        let lowered = lower(cx, &meeting, &arrays);
        let is_tuple = match cx.op {
            Collective::CollectivePermute(op) if op.is_in_place() => {
                cx.operands.get(1).is_some_and(|output| output.as_tuple().is_some())
            }
            _ => false,
        };
        let devices = meeting.members.as_slice().into();
        Ok(MemberPlan {
            instruction: Arc::new(InstructionKey { name, channel: None }),
            meeting,
            devices,
            rank,
            lowered,
            results: arrays.results,
            is_tuple,
        })
    }

    /// Returns the members of the group by rank, as ids in the program.
    pub fn devices(&self) -> &Arc<[usize]> {
        &self.devices
    }

    /// Executes a collective as this member, and waits for the others.
    pub fn run(&self, run: &CollectiveRun, call: CollectiveCall<'_>) -> Result<()> {
        let clique = run.clique(&self.instruction, &self.devices)?;
        blocking(|| clique.run(self.rank, call))
    }

    /// Executes the operation on the arrays of an instruction's operands. Returns the results of the member, as
    /// [`Collective::exchange`] does.
    pub fn run_on_literals(
        &self,
        lowered: &Lowered,
        run: &CollectiveRun,
        operands: &[Literal],
        cancel: &CancelToken,
    ) -> Result<Vec<Literal>> {
        let (data, values) = operands
            .split_at_checked(lowered.data)
            .ok_or_else(|| Error::internal(format!("{} has {} operands", self.instruction, operands.len())))?;
        data.iter().try_for_each(Literal::densify)?;
        let mut results = self.results.iter().map(Literal::zeros).collect::<Result<Vec<_>>>()?;
        results.iter().try_for_each(Literal::densify)?;
        let call = CollectiveCall {
            spec: &lowered.spec,
            operands: data.iter().map(|literal| Source::from(literal.bytes())).collect(),
            results: results.iter_mut().map(|literal| Target::from(literal.bytes_mut())).collect(),
            arguments: lowered.arguments.arguments(values, lowered.spec.members())?,
            cancel,
        };
        self.run(run, call)?;
        Ok(if self.is_tuple { vec![Literal::tuple(results)] } else { results })
    }
}
