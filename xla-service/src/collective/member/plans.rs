//! Plans of a program's collectives, shared by its launches and devices.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{InstrId, Result};

use super::gathering::Gathering;
use super::instruction::{ArrayForm, Instruction};
use super::plan::MemberPlan;

/// Plans of the collectives that a program has executed. Belongs to one optimised module.
#[derive(Debug, Default)]
pub(crate) struct CollectivePlans {
    /// By name of the computation, which is unique in the module.
    plans: Mutex<HashMap<String, HashMap<PlanKey, Arc<MemberPlan>>>>,
}

/// Instruction in its computation, device, and whether the arrays are in the memory of thunks.
type PlanKey = (InstrId, usize, bool);

/// Collective of a program, and its execution by a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCollective {
    /// Instruction and its computation: `all-reduce.1 of main`.
    pub instruction: String,
    /// Device of the program.
    pub device: usize,
    /// Whether the engine accesses the memory of the program's buffers. Otherwise operands and results are copied.
    pub in_place: bool,
    /// Operation of the engine, or the reason why the device gathers the operands of all members.
    pub operation: std::result::Result<&'static str, Gathering>,
}

impl CollectivePlans {
    fn plans(&self) -> MutexGuard<'_, HashMap<String, HashMap<PlanKey, Arc<MemberPlan>>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the plan of a device for an instruction; derives it at the first execution.
    pub fn plan(&self, cx: &Instruction<'_>, device: usize, form: ArrayForm<'_>) -> Result<Arc<MemberPlan>> {
        let key = (cx.id, device, matches!(form, ArrayForm::Memory(..)));
        let known = |plans: &HashMap<String, HashMap<PlanKey, Arc<MemberPlan>>>| {
            plans.get(cx.computation.name()).and_then(|plans| plans.get(&key)).cloned()
        };
        if let Some(plan) = known(&self.plans()) {
            return Ok(plan);
        }
        // Derived without the lock: groups of a large grid take time, and devices derive different plans.
        let plan = Arc::new(MemberPlan::new(cx, device, form)?);
        self.plans().entry(cx.computation.name().to_string()).or_default().insert(key, plan.clone());
        Ok(plan)
    }

    /// Returns the executed plans, sorted by instruction and device.
    pub fn planned(&self) -> Vec<PlannedCollective> {
        let plans = self.plans();
        // Literals have a plan of their own if the engine cannot access the memory.
        let is_executed = |(key, plan): &(&PlanKey, &Arc<MemberPlan>)| !key.2 || plan.lowered.is_ok();
        let plans = plans.values().flat_map(HashMap::iter).filter(is_executed);
        let plans = plans.map(|(&(_, device, in_place), plan)| PlannedCollective {
            instruction: plan.instruction.name.clone(),
            device,
            in_place,
            operation: plan.lowered.as_ref().map(|lowered| lowered.spec.name()).map_err(|&reason| reason),
        });
        let mut planned: Vec<PlannedCollective> = plans.collect();
        planned.sort_by(|a, b| (&a.instruction, a.device, a.in_place).cmp(&(&b.instruction, b.device, b.in_place)));
        planned
    }
}
