//! Explains the plan's decision for each producer and reader.

use xla_hlo::{InstrId, Op};

use super::{Planner, Proposal, Repeating, graph, rules};
use crate::framework::explain::{FusionDecision, FusionReason};

impl Planner<'_> {
    /// Records the decision on `id` for each of its readers. Must be called before the proposal is applied.
    pub(super) fn explain(&mut self, id: InstrId, proposal: Option<&Proposal>) {
        if !self.explains {
            return;
        }
        let mut decisions = Vec::new();
        for &user in self.computation[id].users() {
            let groups = &self.places[user].groups;
            if groups.is_empty() {
                let reason =
                    self.blocked(id).unwrap_or(FusionReason::ReaderIsNoKernel(self.computation[user].opcode()));
                decisions.push(self.decision(id, user, None, reason));
            }
            for &group in groups {
                let fused = proposal.is_some_and(|p| p.groups.iter().any(|(g, _)| *g == group));
                let reason = if fused { self.why(id, proposal) } else { self.why_not(id, user, group) };
                let root = self.groups[group].root;
                decisions.push(self.decision(id, user, (root != user).then_some(root), reason));
            }
        }
        self.decisions.append(&mut decisions);
    }

    /// Corrects decisions that were recorded under the assumption that `id` is fused.
    pub(super) fn explain_expelled(&mut self, id: InstrId) {
        let name = self.computation[id].name();
        for decision in self.decisions.iter_mut().filter(|d| d.producer == name) {
            decision.reason = FusionReason::FreeReshape;
        }
    }

    fn decision(&self, id: InstrId, user: InstrId, root: Option<InstrId>, reason: FusionReason) -> FusionDecision {
        let name = |id: InstrId| self.computation[id].name().to_string();
        FusionDecision {
            pass: "fuse",
            computation: self.computation.name().to_string(),
            producer: name(id),
            consumer: name(user),
            kernel: root.map(name),
            reason,
        }
    }

    fn why(&self, id: InstrId, proposal: Option<&Proposal>) -> FusionReason {
        let groups = proposal.map_or(&[][..], |p| &p.groups);
        match self.repeating(id, groups) {
            _ if rules::is_generator(self.computation, id) => FusionReason::Generator,
            Repeating::Seconds(repeat) => FusionReason::Cheaper(repeat),
            Repeating::None | Repeating::Never { .. } => {
                FusionReason::Once { saved_bytes: self.computation[id].shape().byte_size() }
            }
        }
    }

    /// Returns the reason against fusing `id` into any kernel.
    fn blocked(&self, id: InstrId) -> Option<FusionReason> {
        let instruction = &self.computation[id];
        if rules::may_be_inside(self.computation, id, self.profile) {
            return None;
        }
        let Some(shape) = instruction.shape().as_array() else { return Some(FusionReason::NoArray) };
        let limit = self.profile.fusion.max_transposed_bytes;
        Some(match instruction.op() {
            Op::Parameter(_) | Op::GetTupleElement(_) => FusionReason::ComputesNothing(instruction.opcode()),
            Op::Constant(_) => FusionReason::LargeConstant,
            op if !self.profile.can_fuse(op) => FusionReason::NotFusible(instruction.opcode()),
            _ if !graph::is_free(instruction) => FusionReason::ControlDependency,
            _ if !shape.is_static() => FusionReason::DynamicSize,
            Op::Transpose(_) => FusionReason::TransposeTooLarge { bytes: shape.byte_size(), limit },
            _ => FusionReason::NotFusible(instruction.opcode()),
        })
    }

    fn why_not(&self, id: InstrId, user: InstrId, group: usize) -> FusionReason {
        let own = self.blocked(id).or_else(|| self.refused(id, user, group));
        own.or_else(|| self.elsewhere(id)).unwrap_or_else(|| self.does_not_pay(id))
    }

    /// Returns the reason against fusing `id` into one kernel.
    fn refused(&self, id: InstrId, user: InstrId, group: usize) -> Option<FusionReason> {
        if let Err(reason) = self.accesses_by(id, user, group) {
            return Some(reason);
        }
        let (groups, _) = self.user_groups(id);
        let accesses = groups.iter().find(|(g, _)| *g == group).map_or(&[][..], |(_, accesses)| accesses);
        self.excess(id, group, accesses)
    }

    /// Returns the reason for having `id` in memory regardless of this reader.
    fn elsewhere(&self, id: InstrId) -> Option<FusionReason> {
        if self.computation.root() == id {
            return Some(FusionReason::IsResult);
        }
        let takes = |&user: &InstrId| {
            let place = &self.places[user];
            let kernel = !place.groups.is_empty() && (!place.stored || self.own_group(user).is_some());
            kernel && place.groups.iter().all(|&group| self.refused(id, user, group).is_none())
        };
        let reader = self.computation[id].users().iter().copied().find(|user| !takes(user))?;
        Some(FusionReason::InMemoryFor { reader: self.computation[reader].name().to_string() })
    }

    /// Returns the cost comparison as the reason against computing `id` in all kernels that read it.
    fn does_not_pay(&self, id: InstrId) -> FusionReason {
        match self.repeating(id, &self.user_groups(id).0) {
            Repeating::Seconds(repeat) => FusionReason::MoreExpensive(repeat),
            Repeating::Never { work, times } => FusionReason::Expensive { work, times },
            // A value that is computed once and that no reader refuses is always worthwhile.
            Repeating::None => FusionReason::OperandFromMemory,
        }
    }
}
