//! Collectives that a backend executes in the memory of its devices, with a library of the vendor.

use std::sync::Arc;

use xla_hlo::eval::grid::Grid;
use xla_hlo::{Module, Result};

use super::arguments::ArgumentSource;
use super::gathering::Gathering;
use super::instruction::{ArrayForm, Instruction};
use super::lower::Lowered;
use super::plan::MemberPlan;
use crate::cancel::CancelToken;
use crate::collective::{CollectiveCall, CollectiveRun, CollectiveSpec, InstructionKey, MemberArguments, Operation};
use crate::logical_device::LogicalDevice;
use crate::thunks::{LoweringContext, Thunk, is_exchange};

/// Maximum number of devices that [`OnDevice::spec_of`] examines.
const MOST_DEVICES: usize = 64;

/// Part of one device in a collective whose operands and results a backend reads and writes itself.
///
/// Members meet on the host ([`OnDevice::meet`]), so that they are on time, in order and not cancelled when the backend
/// sends the work to their streams.
#[derive(Debug)]
pub struct OnDevice {
    plan: Arc<MemberPlan>,
    spec: Arc<CollectiveSpec>,
    arguments: MemberArguments,
    run: Arc<CollectiveRun>,
}

impl OnDevice {
    /// Returns the part of a device in a thunk's collective. `None` if only the service can execute it: members gather
    /// their operands, an operand has the root or positions of slices, or devices of other processes take part. All
    /// members take the same decision.
    pub fn new(device: &LogicalDevice, module: &Module, thunk: &Thunk) -> Result<Option<OnDevice>> {
        let computation = &module[thunk.computation];
        if !is_exchange(computation[thunk.instruction].op()) || device.run().spans_processes() {
            return Ok(None);
        }
        let shapes = computation.operand_shapes(thunk.instruction);
        let instruction = Instruction::new(module, (computation, thunk.instruction), &shapes)?;
        let plan = device.plan(&instruction, ArrayForm::Memory(&thunk.operands, &thunk.results))?;
        let Ok(lowered) = &plan.lowered else { return Ok(None) };
        if needs_values(lowered).is_some() {
            return Ok(None);
        }
        let arguments = lowered.arguments.arguments(&[], lowered.spec.members())?;
        let (spec, run) = (lowered.spec.clone(), device.run().clone());
        Ok(Some(OnDevice { plan, spec, arguments, run }))
    }

    /// Returns the operation of an instruction to lower, for the first device that belongs to a group. The groups of an
    /// instruction may have different numbers of members. The error is the reason why only the service can execute it.
    pub fn spec_of(cx: &LoweringContext<'_>) -> Result<std::result::Result<Arc<CollectiveSpec>, String>> {
        let computation = cx.computation();
        if !is_exchange(cx.instruction().op()) {
            return Ok(Err(format!("{} exchanges nothing", cx.instruction().opcode())));
        }
        let shapes = computation.operand_shapes(cx.instruction);
        let instruction = Instruction::new(cx.module, (computation, cx.instruction), &shapes)?;
        let mut reason = Gathering::NoGroup;
        for device in 0..Grid::of(cx.module)?.device_count().min(MOST_DEVICES) {
            let plan = MemberPlan::new(&instruction, device, ArrayForm::Memory(cx.operands, cx.results))?;
            match plan.lowered {
                Ok(lowered) => {
                    return Ok(needs_values(&lowered).map_or(Ok(lowered.spec.clone()), |why| Err(why.to_string())));
                }
                Err(why) => reason = why,
            }
        }
        Ok(Err(reason.to_string()))
    }

    /// Returns operation, types and sizes.
    pub fn spec(&self) -> &Arc<CollectiveSpec> {
        &self.spec
    }

    /// Returns the position of the device in its group.
    pub fn rank(&self) -> usize {
        self.plan.rank
    }

    /// Returns the ids of the members in the program, by rank.
    pub fn devices(&self) -> &Arc<[usize]> {
        self.plan.devices()
    }

    /// Returns the identity of the instruction.
    pub fn instruction(&self) -> &Arc<InstructionKey> {
        &self.plan.instruction
    }

    /// Returns the launch.
    pub fn run(&self) -> &Arc<CollectiveRun> {
        &self.run
    }

    /// Returns the rank of the root of a broadcast.
    pub fn root(&self) -> Option<usize> {
        match self.arguments {
            MemberArguments::Root(root) => Some(root),
            MemberArguments::None | MemberArguments::Slices { .. } | MemberArguments::Rows(_) => None,
        }
    }

    /// Waits until all members call it equally often. Fails if a member does not arrive in time, and if the launch is
    /// aborted or cancelled.
    pub fn meet(&self, cancel: &CancelToken) -> Result<()> {
        let spec = Arc::new(CollectiveSpec::new(Operation::Barrier, Vec::new(), self.spec.members())?);
        let (operands, results, arguments) = (Vec::new(), Vec::new(), MemberArguments::None);
        self.plan.run(&self.run, CollectiveCall { spec: &spec, operands, results, arguments, cancel })
    }
}

/// Returns the reason why the arguments of a member are read from memory.
fn needs_values(lowered: &Lowered) -> Option<&'static str> {
    match lowered.arguments {
        ArgumentSource::None | ArgumentSource::FirstRoot => None,
        ArgumentSource::Root => Some("an operand selects the root"),
        ArgumentSource::Slices(_) => Some("operands select slices"),
        ArgumentSource::Rows => Some("operands select rows"),
    }
}
