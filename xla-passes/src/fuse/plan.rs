//! Fusion plan of a computation: assignment of instructions to kernels.
//!
//! One traversal from the root to the operands. When it visits an instruction, all users are placed, so that the
//! kernels that would evaluate it are known, with the number of indices and evaluations. The instruction is fused into
//! all of them if that is cheaper than one write to memory and the reads back. Otherwise, it becomes the root of a
//! kernel of its own. Nothing is edited before the plan is complete. No kernel can depend on itself, since each has one
//! root and only contains dependencies of that root.

mod explain;
mod limits;

use std::collections::{HashMap, HashSet};

use xla_hlo::entity::SecondaryMap;
use xla_hlo::{ArrayShape, Computation, InstrId, Op};

use super::access::{self, ElementAccess};
use super::group::{FusionGroup, ReadDemand};
use super::{cost, rules};
use crate::TargetProfile;
use crate::analysis::kernel_needs::code;
use crate::analysis::op_cost::{EXPENSIVE, element_cost};
use crate::framework::explain::{FusionDecision, FusionReason, Repeat};
use crate::rewrite::graph;

/// Placement of an instruction.
#[derive(Clone, Default)]
struct FusionPlacement {
    /// Groups that evaluate the instruction, including its own.
    groups: Vec<usize>,
    /// Whether its value is written to memory.
    stored: bool,
}

/// The plan of one computation.
pub struct FusionPlan {
    /// Groups, consumers before producers.
    pub groups: Vec<FusionGroup>,
    /// Decisions for each value and reader; empty unless requested.
    pub decisions: Vec<FusionDecision>,
}

/// Maximum number of cheap operations over which a chain is traced back to its origin.
const LOOK_AHEAD: usize = 5;

/// Number of users above which a value is assumed to be in memory for some of them.
const MANY_USERS: usize = 16;

/// Computes the plan, with the reasons of its decisions if `explains` is set.
pub fn plan(computation: &Computation, profile: &TargetProfile, explains: bool) -> FusionPlan {
    let mut planner = Planner {
        computation,
        profile,
        groups: Vec::new(),
        places: SecondaryMap::new(FusionPlacement::default()),
        explains,
        decisions: Vec::new(),
    };
    let mut order = computation.post_order();
    order.reverse();
    for &id in &order {
        planner.place(id);
    }
    order.reverse();
    for &id in &order {
        planner.expel_free_reshape(id);
    }
    FusionPlan { groups: planner.groups, decisions: planner.decisions }
}

struct Planner<'c> {
    computation: &'c Computation,
    profile: &'c TargetProfile,
    groups: Vec<FusionGroup>,
    places: SecondaryMap<InstrId, FusionPlacement>,
    explains: bool,
    decisions: Vec<FusionDecision>,
}

/// Proposal to evaluate an instruction inside its users' groups.
struct Proposal {
    groups: Vec<(usize, Vec<ElementAccess>)>,
    /// Whether every user can evaluate it; otherwise it must be stored as well.
    everywhere: bool,
}

/// Kernels that read a value.
enum Readers {
    None,
    One(usize),
    /// Several kernels. The set only lists kernels that affect costs.
    Many(HashSet<usize>),
}

/// Cost of evaluating an instruction inside its users' kernels.
enum Repeating {
    /// Nothing is computed twice.
    None,
    /// Too much work would be repeated, regardless of the cost of memory.
    Never { work: f64, times: f64 },
    /// Fused if recomputation is faster.
    Seconds(Repeat),
}

impl Planner<'_> {
    fn place(&mut self, id: InstrId) {
        let proposal = self.propose(id);
        self.explain(id, proposal.as_ref());
        let inside = proposal.as_ref().is_some_and(|p| !p.groups.is_empty());
        let stored = !proposal.as_ref().is_some_and(|p| p.everywhere) || !inside;
        let mut place = FusionPlacement { groups: Vec::new(), stored };
        if let Some(proposal) = proposal {
            for (group, accesses) in proposal.groups {
                self.join(id, group, accesses);
                place.groups.push(group);
            }
        }
        if stored && rules::may_root(self.computation, id, self.profile) {
            place.groups.push(self.open(id));
        }
        self.places[id] = place;
    }

    /// Returns the evaluations of `id` inside its users; `None` if it cannot or should not be fused.
    fn propose(&self, id: InstrId) -> Option<Proposal> {
        let computation = self.computation;
        if !rules::may_be_inside(computation, id, self.profile) || computation[id].users().is_empty() {
            return None;
        }
        // A user that is stored without a kernel (a dot, a call) reads from memory.
        let evaluates = |&user: &InstrId| {
            let place = &self.places[user];
            !place.groups.is_empty() && (!place.stored || self.own_group(user).is_some())
        };
        let mut everywhere = computation.root() != id && computation[id].users().iter().all(evaluates);
        let (mut groups, refused) = self.user_groups(id);
        groups.retain(|(group, accesses)| !refused.contains(group) && self.excess(id, *group, accesses).is_none());
        everywhere &= refused.is_empty() && self.all_user_groups(id).len() == groups.len();
        let pays = rules::is_generator(computation, id) || (everywhere && self.repeating_pays(id, &groups));
        pays.then_some(Proposal { groups, everywhere })
    }

    /// Returns the kernels that would evaluate `id`, with the accesses, and the kernels that must read it from memory.
    fn user_groups(&self, id: InstrId) -> (Vec<(usize, Vec<ElementAccess>)>, HashSet<usize>) {
        let mut groups: Vec<(usize, Vec<ElementAccess>)> = Vec::new();
        let mut refused: HashSet<usize> = HashSet::new();
        for &user in self.computation[id].users() {
            for &group in &self.places[user].groups {
                match self.accesses_by(id, user, group) {
                    Ok(new) => add_accesses(&mut groups, group, new),
                    Err(_) => {
                        refused.insert(group);
                    }
                }
            }
        }
        (groups, refused)
    }

    fn own_group(&self, id: InstrId) -> Option<usize> {
        self.places[id].groups.last().copied().filter(|&g| self.groups[g].root == id)
    }

    fn all_user_groups(&self, id: InstrId) -> HashSet<usize> {
        self.computation[id].users().iter().flat_map(|&u| self.places[u].groups.iter().copied()).collect()
    }

    /// Returns the accesses of `user` to `id` inside `group`, or the reason for reading it from memory.
    fn accesses_by(&self, id: InstrId, user: InstrId, group: usize) -> Result<Vec<ElementAccess>, FusionReason> {
        let computation = self.computation;
        let target = &self.groups[group];
        let is_root = target.root == user;
        let mut out = Vec::new();
        for (position, _) in computation[user].operands().iter().enumerate().filter(|(_, o)| **o == id) {
            if !rules::user_takes(computation, user, position, id, self.profile) {
                return Err(FusionReason::OperandFromMemory);
            }
            for &access in &target.members[&user] {
                access::merge(&mut out, access::of_operand(computation, user, position, access, is_root));
            }
        }
        if !rules::keeps_update_in_place(computation, target, id, &out, self.profile) {
            return Err(FusionReason::UpdateInPlace);
        }
        if rules::reduces_once(computation, target.root, id, &out) { Ok(out) } else { Err(FusionReason::ReducesTwice) }
    }

    /// Whether evaluating `id` in all these groups is no slower than storing it once and reading it back.
    fn repeating_pays(&self, id: InstrId, groups: &[(usize, Vec<ElementAccess>)]) -> bool {
        match self.repeating(id, groups) {
            Repeating::None => true,
            Repeating::Never { .. } => false,
            Repeating::Seconds(repeat) => repeat.again_seconds <= repeat.stored_seconds,
        }
    }

    fn repeating(&self, id: InstrId, groups: &[(usize, Vec<ElementAccess>)]) -> Repeating {
        let elements = access::elements(self.computation, id);
        let evaluations: f64 = groups.iter().flat_map(|(_, accesses)| accesses).map(|a| a.evaluations).sum();
        let copies: usize = groups.iter().map(|(_, accesses)| accesses.len()).sum();
        if let ([(group, _)], Op::Reduce(_)) = (groups, self.computation[id].op()) {
            return self.without_lanes(id, *group);
        }
        if copies == 1 && evaluations <= elements {
            return Repeating::None;
        }
        let times = evaluations.max(copies as f64) / elements.max(1.0);
        let element_type = self.computation[id].shape().element_type();
        let work = element_type.map_or(f64::INFINITY, |ty| element_cost(self.computation[id].op(), ty));
        let Some(element_type) = element_type.filter(|_| work < EXPENSIVE) else {
            return Repeating::Never { work, times };
        };
        let compute = cost::compute_seconds(self.profile, (evaluations - elements).max(0.0), work, element_type);
        let numbers: Vec<usize> = groups.iter().map(|(g, _)| *g).collect();
        let again_seconds = compute + self.inputs_seconds(id, evaluations, &numbers, LOOK_AHEAD);
        // A separate kernel needs its operands as well.
        let own_seconds = self.inputs_seconds(id, elements, &[self.groups.len()], LOOK_AHEAD);
        let stored_seconds = self.store_seconds(id, evaluations, groups.len()) + own_seconds;
        Repeating::Seconds(Repeat { times, again_seconds, stored_seconds })
    }

    /// Returns the cost of a reduction for the rest of a kernel. If reductions run along contiguous memory, operations
    /// on each separate result are not vectorized. They may take up to 1/8 of the time of the reductions.
    fn without_lanes(&self, id: InstrId, group: usize) -> Repeating {
        let (computation, profile) = (self.computation, self.profile);
        let operand = computation[id].operand(0);
        let Some(element_type) = computation[operand].shape().element_type() else { return Repeating::None };
        if !rules::reduces_along_memory(computation, id) {
            return Repeating::None;
        }
        let scalar_seconds = |(&member, accesses): (&InstrId, &Vec<ElementAccess>)| {
            let ty = computation[member].shape().element_type()?;
            let evaluations = accesses.iter().map(|a| a.evaluations).sum::<f64>();
            let lanes = cost::compute_seconds(profile, evaluations, element_cost(computation[member].op(), ty), ty);
            Some(lanes * (cost::lanes(profile, ty) - 1.0))
        };
        let members =
            self.groups[group].members.iter().filter(|(m, _)| !matches!(computation[**m].op(), Op::Reduce(_)));
        let again_seconds = members.filter_map(scalar_seconds).sum();
        let elements = access::elements(computation, operand);
        let reduction_seconds = cost::compute_seconds(profile, elements, 1.0, element_type)
            + self.supply_seconds(operand, elements, &[self.groups.len()], LOOK_AHEAD);
        let stored_seconds = self.store_seconds(id, access::elements(computation, id), 1) + reduction_seconds / 8.0;
        Repeating::Seconds(Repeat { times: 1.0, again_seconds, stored_seconds })
    }

    /// Returns the seconds to store `id` and to read it back in `groups` groups with `evaluations` evaluations of its
    /// elements in total.
    fn store_seconds(&self, id: InstrId, evaluations: f64, groups: usize) -> f64 {
        let size = self.computation[id].shape().byte_size() as f64;
        self.profile.launch_seconds
            + cost::memory_seconds(self.profile, size, size)
            + self.load_seconds(id, evaluations, groups)
    }

    fn load_seconds(&self, id: InstrId, evaluations: f64, groups: usize) -> f64 {
        let size = self.computation[id].shape().byte_size() as f64;
        let elements = access::elements(self.computation, id).max(1.0);
        // A kernel that evaluates a part (through a slice) reads a part.
        let read = size * (evaluations / elements).min(groups as f64);
        cost::memory_seconds(self.profile, size, read)
    }

    /// Returns the seconds to supply the operands of `id` to these groups, beyond the cost that other kernels have for
    /// them anyway. A group number that does not exist yet represents a new group.
    fn inputs_seconds(&self, id: InstrId, evaluations: f64, groups: &[usize], look_ahead: usize) -> f64 {
        let operands: HashSet<InstrId> = self.computation[id].operands().iter().copied().collect();
        let each = evaluations / groups.len() as f64;
        let seconds = |&o: &InstrId| match self.readers(o) {
            // The operand will be in memory for other kernels.
            Readers::Many(have) => {
                let new = groups.iter().filter(|g| !have.contains(g)).count();
                self.load_seconds(o, each * new as f64, new)
            }
            Readers::One(has) if groups == [has] => 0.0,
            Readers::One(has) => {
                let new = groups.iter().filter(|g| **g != has).count();
                let mut all = groups.to_vec();
                all.extend((new == groups.len()).then_some(has));
                let share = new as f64 / all.len() as f64;
                share * self.supply_seconds(o, each * all.len() as f64, &all, look_ahead)
            }
            Readers::None => self.supply_seconds(o, evaluations, groups, look_ahead),
        };
        operands.iter().map(seconds).sum()
    }

    /// Returns the kernels that read a value, as far as they are known.
    fn readers(&self, id: InstrId) -> Readers {
        let users = self.computation[id].users();
        if rules::is_generator(self.computation, id) {
            return Readers::None;
        }
        if users.len() > MANY_USERS {
            return Readers::Many(HashSet::new());
        }
        let groups = self.all_user_groups(id);
        match (groups.len(), groups.iter().next()) {
            (1, Some(&one)) => Readers::One(one),
            (0, _) => Readers::None,
            _ => Readers::Many(groups),
        }
    }

    /// Returns the seconds to supply `id` to these groups by storing or by evaluating it again, whichever is faster.
    fn supply_seconds(&self, id: InstrId, evaluations: f64, groups: &[usize], look_ahead: usize) -> f64 {
        let computation = self.computation;
        if rules::is_generator(computation, id) {
            return 0.0;
        }
        let count = groups.len();
        if self.is_in_memory(id) {
            return self.load_seconds(id, evaluations, count);
        }
        let elements = access::elements(computation, id);
        let once = count == 1 && evaluations <= elements;
        // A value that is evaluated once in one place needs no memory.
        let store =
            if once { self.load_seconds(id, evaluations, 1) } else { self.store_seconds(id, evaluations, count) };
        let Some(element_type) = computation[id].shape().element_type() else { return store };
        let work = element_cost(computation[id].op(), element_type);
        if look_ahead == 0 || (work >= EXPENSIVE && !once) {
            return store;
        }
        let evaluations = if elements == 1.0 { count as f64 } else { evaluations };
        let compute = cost::compute_seconds(self.profile, (evaluations - elements).max(0.0), work, element_type);
        store.min(compute + self.inputs_seconds(id, evaluations, groups, look_ahead - 1))
    }

    /// Whether a value is stored regardless of the plan.
    fn is_in_memory(&self, id: InstrId) -> bool {
        let computation = self.computation;
        let reads_memory = |&u: &InstrId| {
            !rules::may_be_inside(computation, u, self.profile) && !rules::may_root(computation, u, self.profile)
        };
        !rules::may_be_inside(computation, id, self.profile)
            || computation.root() == id
            || computation[id].users().iter().any(reads_memory)
    }

    fn join(&mut self, id: InstrId, group: usize, accesses: Vec<ElementAccess>) {
        let added = code(&self.computation[id]) * accesses.len() as f64;
        self.remove_read(group, id);
        let target = &mut self.groups[group];
        target.size += accesses.len();
        target.code += added;
        target.members.insert(id, accesses);
        for &operand in self.computation[id].operands() {
            if !self.groups[group].members.contains_key(&operand) {
                self.add_read(group, operand);
            }
        }
    }

    fn open(&mut self, id: InstrId) -> usize {
        let access = ElementAccess::root(access::elements(self.computation, id));
        let (members, code) = (HashMap::from([(id, vec![access])]), code(&self.computation[id]));
        let (reads, demand) = (HashSet::new(), ReadDemand::default());
        self.groups.push(FusionGroup { root: id, members, reads, demand, size: 1, code });
        let group = self.groups.len() - 1;
        for &operand in self.computation[id].operands() {
            self.add_read(group, operand);
        }
        group
    }

    /// Removes a reshape of a stored value from kernels: outside of them it is free, inside it costs index arithmetic.
    fn expel_free_reshape(&mut self, id: InstrId) {
        let instruction = &self.computation[id];
        if !matches!(instruction.op(), Op::Reshape(_)) || self.places[id].stored || !graph::is_free(instruction) {
            return;
        }
        let operand = instruction.operand(0);
        let elsewhere = |p: &Planner<'_>, g: usize| !p.groups[g].members.contains_key(&operand);
        let single = instruction.shape().as_array().is_none_or(|s: &ArrayShape| s.element_count() == 1);
        if single || !self.places[id].groups.iter().all(|&g| elsewhere(self, g)) {
            return;
        }
        self.explain_expelled(id);
        let place =
            std::mem::replace(&mut self.places[id], FusionPlacement { stored: true, ..FusionPlacement::default() });
        for g in place.groups {
            self.groups[g].members.remove(&id);
            self.add_read(g, id);
            let members = &self.groups[g].members;
            if !self.computation[operand].users().iter().any(|u| members.contains_key(u)) {
                self.remove_read(g, operand);
            }
        }
    }
}

fn add_accesses(groups: &mut Vec<(usize, Vec<ElementAccess>)>, group: usize, new: Vec<ElementAccess>) {
    match groups.iter_mut().find(|(g, _)| *g == group) {
        Some((_, accesses)) => new.into_iter().for_each(|a| access::merge(accesses, a)),
        None => groups.push((group, new)),
    }
}
