//! Fingerprints of modules: equal for modules that compile to the same program.

use std::hash::{DefaultHasher, Hash, Hasher};

use xla_hlo::{Computation, InstrId, Instruction, Module, ModuleAttributes, ProgramShape};

/// 128-bit hash of everything that a compiler may read, including names. Stable only within one process; not for files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fingerprint(u64, u64);

impl Fingerprint {
    /// Computes the fingerprint of a module.
    pub fn of(module: &Module) -> Fingerprint {
        let mut hasher = WideHasher::new();
        hash_module(module, &mut hasher);
        Fingerprint(hasher.0.finish(), hasher.1.finish())
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}{:016x}", self.0, self.1)
    }
}

/// Two hashers with different initial states, for a hash of twice the width.
struct WideHasher(DefaultHasher, DefaultHasher);

impl WideHasher {
    fn new() -> WideHasher {
        let mut second = DefaultHasher::new();
        second.write_u8(1);
        WideHasher(DefaultHasher::new(), second)
    }
}

impl Hasher for WideHasher {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
        self.1.write(bytes);
    }
}

/// Hashes everything that a compiler may read.
pub(crate) fn hash_module(module: &Module, hasher: &mut impl Hasher) {
    module.name().hash(hasher);
    module.entry_id().hash(hasher);
    hash_attributes(module.attributes(), hasher);
    for (id, computation) in module.iter() {
        id.hash(hasher);
        hash_computation(computation, hasher);
    }
}

fn hash_computation(computation: &Computation, hasher: &mut impl Hasher) {
    computation.name().hash(hasher);
    computation.execution_thread().hash(hasher);
    computation.root_if_set().hash(hasher);
    computation.schedule().hash(hasher);
    computation.len().hash(hasher);
    for (id, instruction) in computation.iter() {
        hash_instruction(id, instruction, hasher);
    }
}

fn hash_instruction(id: InstrId, instruction: &Instruction, hasher: &mut impl Hasher) {
    id.hash(hasher);
    instruction.name().hash(hasher);
    instruction.shape().hash(hasher);
    instruction.op().hash(hasher);
    instruction.operands().hash(hasher);
    instruction.control_predecessors().hash(hasher);
    let Some(annotations) = instruction.annotations() else { return };
    annotations.sharding.hash(hasher);
    annotations.frontend_attributes.hash(hasher);
    annotations.backend_config.hash(hasher);
    annotations.parameter_replication.hash(hasher);
}

/// Hashes all header attributes except provenance (stack tables, recovery tables, debug attributes).
fn hash_attributes(attributes: &ModuleAttributes, hasher: &mut impl Hasher) {
    let ModuleAttributes {
        is_scheduled,
        entry_computation_layout,
        input_output_alias,
        buffer_donors,
        alias_passthrough_params,
        replica_count,
        num_partitions,
        allow_spmd_sharding_propagation_to_parameters,
        allow_spmd_sharding_propagation_to_output,
        frontend_attributes,
        origin_recovery_table: _,
        debug_attributes: _,
        stack: _,
    } = attributes;
    is_scheduled.hash(hasher);
    let layout = entry_computation_layout.as_ref();
    layout.map(|ProgramShape { parameters, result }| (parameters, result)).hash(hasher);
    input_output_alias.hash(hasher);
    buffer_donors.hash(hasher);
    alias_passthrough_params.hash(hasher);
    (replica_count, num_partitions).hash(hasher);
    allow_spmd_sharding_propagation_to_parameters.hash(hasher);
    allow_spmd_sharding_propagation_to_output.hash(hasher);
    frontend_attributes.hash(hasher);
}
