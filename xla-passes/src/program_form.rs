//! Forms of programs for several devices: a program of each device's own values, or one on global values.

use std::fmt;

use xla_hlo::sdy::{self, TensorSharding};
use xla_hlo::{CompId, InstrId, LeafSharding, Module, Op, Sharding, ShardingKind};

use crate::join::rewrite::{is_edge, says_only};

/// Form of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramForm {
    /// One device runs it; replicas, if there are several, run independently of each other.
    OneDevice,
    /// Each device runs the program on its own values, and communicates by collectives.
    PerDevice,
    /// Values are global, so the program must be partitioned or [joined](crate::join) before it runs.
    Global(GlobalValues),
}

/// First instruction of a program that requires global values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalValues {
    /// Name of the instruction.
    pub instruction: String,
    /// Name of its computation.
    pub computation: String,
    /// Property of the instruction.
    pub cause: GlobalCause,
}

/// Property of an instruction that requires global values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalCause {
    /// Converts between global values and values of one device, or annotates a global value.
    Boundary,
    /// Has a sharding that splits its value over the devices.
    Sharding,
    /// Has a side effect that a program on replicated values performs once.
    Effect,
}

impl fmt::Display for GlobalValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GlobalValues { instruction, computation, cause } = self;
        let cause = match cause {
            GlobalCause::Boundary => "is a boundary or an annotation of global values",
            GlobalCause::Sharding => "has the sharding of a global value",
            GlobalCause::Effect => "has a side effect on replicated values",
        };
        write!(f, "%{instruction} of {computation} {cause}")
    }
}

/// Returns the form of a module:
///
/// - `OneDevice` for a single device, and for replicas without collectives;
/// - `PerDevice` for replicas of one partition that communicate, and for partitioned programs: an instruction reads the
///   partition id or exchanges values across partitions, or the module is scheduled, as XLA prints it after
///   partitioning. Shardings that such a program retains describe its arguments and results;
/// - `PerDevice` also for partitions without shardings and side effects, where all devices compute the same values;
/// - `Global` for all others, for programs with boundaries of manual computations, and for a sharding that cannot be
///   read, which [`join`](crate::join) reports if it needs it.
///
/// Only computations that the entry reaches count.
pub fn program_form(module: &Module) -> ProgramForm {
    let attributes = module.attributes();
    let (replicas, partitions) = (attributes.replica_count, attributes.num_partitions);
    let reached = module.reachable();
    let instructions = || reached.iter().flat_map(|&c| module[c].ids().map(move |i| (c, i)));
    let ops = || instructions().map(|(c, i)| module[c][i].op());
    if partitions <= 1 && (replicas <= 1 || !ops().any(|op| matches!(op, Op::Collective(_)))) {
        return ProgramForm::OneDevice;
    }
    let global = |(c, i): (CompId, InstrId), cause| {
        let (instruction, computation) = (module[c][i].name().to_string(), module[c].name().to_string());
        ProgramForm::Global(GlobalValues { instruction, computation, cause })
    };
    if let Some(at) = instructions().find(|&(c, i)| is_boundary(module[c][i].op())) {
        return global(at, GlobalCause::Boundary);
    }
    let is_partitioned = || ops().any(|op| matches!(op, Op::Collective(op) if op.crosses_partitions()));
    if partitions <= 1 || attributes.is_scheduled || is_partitioned() {
        return ProgramForm::PerDevice;
    }
    if let Some(at) = instructions().find(|&(c, i)| is_split(module, c, i)) {
        return global(at, GlobalCause::Sharding);
    }
    match instructions().find(|&(c, i)| has_effect(module[c][i].op())) {
        Some(at) => global(at, GlobalCause::Effect),
        None => ProgramForm::PerDevice,
    }
}

/// Whether an operation exists only for shardings of global values.
fn is_boundary(op: &Op) -> bool {
    matches!(op, Op::CustomCall(call) if says_only(&call.target) || is_edge(&call.target))
}

/// Whether an instruction states a sharding that splits its value or stores it on some devices only, or one that cannot
/// be read.
fn is_split(module: &Module, computation: CompId, id: InstrId) -> bool {
    let Some(annotations) = module[computation][id].annotations() else { return false };
    if annotations.frontend_attributes.contains_key(sdy::attribute::SHARDING) {
        let Ok(stated) = sdy::shardings(module, computation, id) else { return true };
        let is_split = |s: &TensorSharding| !s.unreduced.is_empty() || s.dims.iter().any(|dim| !dim.axes.is_empty());
        return stated.iter().flatten().any(is_split);
    }
    let is_whole = |leaf: &LeafSharding| {
        matches!(leaf.kind, ShardingKind::Replicated | ShardingKind::Manual | ShardingKind::Unknown)
    };
    match &annotations.sharding {
        None => false,
        Some(Sharding::Leaf(leaf)) => !is_whole(leaf),
        Some(Sharding::Tuple(leaves)) => !leaves.iter().all(is_whole),
    }
}

/// Whether an operation has, or may have, an effect that depends on the number of devices that execute it.
fn has_effect(op: &Op) -> bool {
    op.has_side_effect() || matches!(op, Op::CustomCall(_))
}
