//! Limits of a kernel: its instructions, its code, the values it keeps at a time, and the arrays it reads.

use std::collections::HashSet;

use xla_hlo::InstrId;

use super::{Planner, rules};
use crate::analysis::kernel_needs::{code, registers};
use crate::framework::explain::FusionReason;
use crate::fuse::access::ElementAccess;

impl Planner<'_> {
    /// The limit that a kernel would exceed that evaluates `id` as well.
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
        let reads = self.reads_with(id, group);
        let registers = self.live_registers(&reads);
        // What needs no more than there is already never makes it worse.
        if registers > limits.max_live_registers && registers > self.live_registers(&target.reads) {
            return Some(FusionReason::TooManyLiveValues { registers, limit: limits.max_live_registers });
        }
        // Generators are evaluated inside of the kernel and never read; where registers are counted, so is the rest of
        // what is still to be computed.
        let counted = limits.max_live_registers < usize::MAX;
        let is_read = |o: InstrId| !rules::is_generator(self.computation, o) && (!counted || self.is_in_memory(o));
        let operands = reads.iter().filter(|&&o| is_read(o)).count();
        (operands >= limits.max_operands)
            .then_some(FusionReason::TooManyOperands { count: operands + 1, limit: limits.max_operands })
    }

    /// Values that a kernel needs from elsewhere once it evaluates `id` as well.
    fn reads_with(&self, id: InstrId, group: usize) -> HashSet<InstrId> {
        let target = &self.groups[group];
        let operands = self.computation[id].operands().iter().filter(|o| !target.members.contains_key(o));
        target.reads.iter().chain(operands).copied().filter(|&o| o != id).collect()
    }

    /// Registers of values that are still to be computed: if they are inside, they are live all together where the
    /// members so far begin. Arrays in memory are read when it is their turn.
    fn live_registers(&self, reads: &HashSet<InstrId>) -> usize {
        let live = reads.iter().filter(|&&o| !rules::is_generator(self.computation, o) && !self.is_in_memory(o));
        live.map(|&o| registers(self.computation[o].shape())).sum()
    }
}
