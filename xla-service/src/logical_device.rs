//! A device's place in a launch over several devices, and its connection to the others.

use std::sync::Arc;

use xla_hlo::eval::grid::Grid;
use xla_hlo::eval::{Evaluator, Peers};
use xla_hlo::{Computation, ElementType, InstrId, Literal, Module, Result, Shape};

use crate::cancel::CancelToken;
use crate::collective::{
    ArrayForm, CollectiveCall, CollectivePlans, CollectiveRun, CollectiveSpec, Instruction, MemberArguments,
    MemberPlan, Operation, Part, Source, Target,
};
use crate::signature::{group, ungroup};

/// One device of a launch over several devices. Clones are handles to the same device of the same launch.
#[derive(Clone, Debug)]
pub struct LogicalDevice {
    grid: Grid,
    id: usize,
    run: Arc<CollectiveRun>,
    plans: Arc<CollectivePlans>,
}

impl LogicalDevice {
    /// Creates device `id`, which is `replica * partitions + partition`, of a launch of the program that has these
    /// plans.
    pub(crate) fn new(grid: Grid, id: usize, run: Arc<CollectiveRun>, plans: Arc<CollectivePlans>) -> LogicalDevice {
        LogicalDevice { grid, id, run, plans }
    }

    /// Returns the id of the device in the program: `replica * partitions + partition`.
    pub fn id(&self) -> usize {
        self.id
    }

    /// Returns the replica that the device runs; result of `replica-id`.
    pub fn replica(&self) -> usize {
        self.id / self.grid.partitions
    }

    /// Returns the partition that the device runs; result of `partition-id`.
    pub fn partition(&self) -> usize {
        self.id % self.grid.partitions
    }

    /// Returns the launch, which creates communicators for backends that execute collectives themselves.
    pub fn run(&self) -> &Arc<CollectiveRun> {
        &self.run
    }

    /// Returns this device's share of `threads` threads: the devices of the launch run at the same time.
    pub fn threads(&self, threads: usize) -> usize {
        (threads / self.grid.device_count()).max(1)
    }

    /// Returns the plan of this device for a collective.
    pub(crate) fn plan(&self, instruction: &Instruction<'_>, form: ArrayForm<'_>) -> Result<Arc<MemberPlan>> {
        self.plans.plan(instruction, self.id, form)
    }

    /// Connects an evaluator to the other devices of the launch.
    pub fn connect<'m>(&self, evaluator: Evaluator<'m>, cancel: &CancelToken) -> Evaluator<'m> {
        let peers = DevicePeers { device: self.clone(), module: evaluator.module(), cancel: cancel.clone() };
        evaluator.on_device(self.replica(), self.partition(), Arc::new(peers))
    }
}

/// Connection of an evaluator to the other devices of its launch.
///
/// The engine executes the collective. If it has no such operation ([`Gathering`](crate::collective::Gathering)), every
/// member of a group receives the operands of all members and computes the results of all, as the evaluator over a grid
/// does. Results equal those of the grid bit for bit in both cases, except for the payloads of NaNs that a reduction
/// computes.
struct DevicePeers<'m> {
    device: LogicalDevice,
    module: &'m Module,
    cancel: CancelToken,
}

impl<'m> Peers<'m> for DevicePeers<'m> {
    fn exchange(&self, position: (&'m Computation, InstrId), operands: Vec<Literal>) -> Result<Vec<Literal>> {
        let shapes = position.0.operand_shapes(position.1);
        let instruction = Instruction::new(self.module, position, &shapes)?;
        let plan = self.device.plan(&instruction, ArrayForm::Literals)?;
        let rows = match (&plan.lowered, plan.meeting.members.len()) {
            // The results of a single member share the memory of its operands.
            (_, 1) => vec![operands],
            (Ok(lowered), _) => {
                let leaves: Vec<Literal> = operands.into_iter().flat_map(ungroup).collect();
                return plan.run_on_literals(lowered, &self.device.run, &leaves, &self.cancel);
            }
            (Err(_), _) => self.gather(&plan, operands)?,
        };
        let mut reducers = Evaluator::new(self.module).with_cancellation(self.cancel.flag().clone());
        Ok(instruction.op.exchange(&mut reducers, &plan.meeting, &rows)?.swap_remove(plan.rank))
    }
}

impl DevicePeers<'_> {
    /// Returns the operands of all members.
    fn gather(&self, plan: &MemberPlan, operands: Vec<Literal>) -> Result<Vec<Vec<Literal>>> {
        let shapes: Vec<Shape> = operands.iter().map(|operand| operand.shape().clone()).collect();
        operands.iter().try_for_each(Literal::densify)?;
        let leaves: Vec<Literal> = operands.into_iter().flat_map(ungroup).collect();
        let sent = leaves.iter().map(Literal::bytes).collect::<Vec<_>>().concat();
        let members = plan.meeting.members.len();
        let spec = CollectiveSpec::new(Operation::AllGather, vec![Part::whole(ElementType::U8, sent.len())], members)?;
        let mut received = vec![0; sent.len() * members];
        let call = CollectiveCall {
            spec: &Arc::new(spec),
            operands: vec![Source::from(&sent[..])],
            results: vec![Target::from(&mut received[..])],
            arguments: MemberArguments::None,
            cancel: &self.cancel,
        };
        plan.run(&self.device.run, call)?;
        let row = |member: usize| row(&shapes, &leaves, &received[member * sent.len()..]);
        (0..members).map(row).collect()
    }
}

/// Returns operands of these shapes from the bytes of their leaves. `leaves` has arrays of the same shapes.
fn row(shapes: &[Shape], leaves: &[Literal], mut bytes: &[u8]) -> Result<Vec<Literal>> {
    let mut leaf = |like: &Literal| {
        let (own, rest) = bytes.split_at(like.byte_len());
        bytes = rest;
        Literal::from_bytes(like.array_shape(), own.to_vec())
    };
    let mut leaves = leaves.iter().map(&mut leaf).collect::<Result<Vec<_>>>()?.into_iter();
    shapes.iter().map(|shape| group(shape, &mut leaves)).collect()
}
