//! Limits of a kernel: number of instructions, code size, register pressure, and number of arrays.

use std::collections::HashSet;

use xla_hlo::InstrId;

use super::{Planner, rules};
use crate::analysis::kernel_needs::{code, registers};
use crate::framework::explain::FusionReason;
use crate::fuse::access::ElementAccess;
use crate::fuse::group::ReadDemand;

impl Planner<'_> {
    /// Returns the limit that a kernel would exceed if it also evaluated `id`.
    pub(super) fn excess(&self, id: InstrId, group: usize, accesses: &[ElementAccess]) -> Option<FusionReason> {
        let (limits, target) = (&self.profile.fusion, &self.groups[group]);
        let count = target.size + accesses.len();
        if count > limits.max_instructions {
            return Some(FusionReason::TooManyInstructions { count, limit: limits.max_instructions });
        }
        let code = (target.code + code(&self.computation[id]) * accesses.len() as f64) as u64;
        if code > limits.max_code {
            return Some(FusionReason::TooMuchCode { count: code, limit: limits.max_code });
        }
        let demand = self.demand_with(id, group);
        // An instruction that does not increase the demand is always permitted.
        if demand.registers > limits.max_live_registers && demand.registers > target.demand.registers {
            return Some(FusionReason::TooManyLiveValues {
                registers: demand.registers,
                limit: limits.max_live_registers,
            });
        }
        (demand.arrays >= limits.max_operands)
            .then_some(FusionReason::TooManyOperands { count: demand.arrays + 1, limit: limits.max_operands })
    }

    /// Returns the demand of a kernel for external values if it also evaluates `id`. Takes time in the number of
    /// operands of `id`, not in all reads of the kernel.
    fn demand_with(&self, id: InstrId, group: usize) -> ReadDemand {
        let target = &self.groups[group];
        let is_new = |o: &InstrId| *o != id && !target.members.contains_key(o) && !target.reads.contains(o);
        let operands: HashSet<InstrId> = self.computation[id].operands().iter().copied().filter(is_new).collect();
        let added = operands.into_iter().map(|o| self.demand_of(o)).fold(target.demand, ReadDemand::plus);
        if target.reads.contains(&id) { added.minus(self.demand_of(id)) } else { added }
    }

    /// Returns the demand of one value that a kernel reads.
    ///
    /// Values that are not computed yet may be evaluated inside the kernel; they are then all live at the start of the
    /// present members. Arrays in memory are loaded when they are needed. Generators are evaluated inside the kernel
    /// and never read. If registers are counted, all other values that are not computed yet are counted as registers.
    fn demand_of(&self, value: InstrId) -> ReadDemand {
        if rules::is_generator(self.computation, value) {
            return ReadDemand::default();
        }
        let counted = self.profile.fusion.max_live_registers < usize::MAX;
        let in_memory = counted && self.is_in_memory(value);
        let registers = if counted && !in_memory { registers(self.computation[value].shape()) } else { 0 };
        ReadDemand { registers, arrays: usize::from(!counted || in_memory) }
    }

    /// Records a read of a value by a kernel.
    pub(super) fn add_read(&mut self, group: usize, value: InstrId) {
        if self.groups[group].reads.insert(value) {
            let demand = self.demand_of(value);
            self.groups[group].demand = self.groups[group].demand.plus(demand);
        }
    }

    /// Removes the record of a read of a value by a kernel.
    pub(super) fn remove_read(&mut self, group: usize, value: InstrId) {
        if self.groups[group].reads.remove(&value) {
            let demand = self.demand_of(value);
            self.groups[group].demand = self.groups[group].demand.minus(demand);
        }
    }
}
