//! State of an executable: a compiled program and its properties.

use std::sync::{Arc, OnceLock};

use prost::Message;
use xla_hlo::ops::Op;
use xla_hlo::proto::messages::HloModuleProto;
use xla_hlo::{Error, LeafSharding, Module, ProgramShape, VerifiedModule, proto};
use xla_service::{CostAnalysis, Executable, Fingerprint, LoadedExecutable, MemoryAnalysis, Signature, serialized};

use super::values::ValueList;
use crate::abi::kinds;
use crate::ffi::Kind;
use crate::named::{Attributes, Value};
use crate::options::{ExecutableAndOptionsProto, HloModuleConfigProto, HloModuleProtoWithConfig, Options};
use crate::status::Status;

impl Kind for kinds::Executable {
    type Value = Arc<ExecutableState>;
    const NAME: &'static str = "PJRT_Executable";
}

/// Compiled program, on a client's devices or without a client.
pub(crate) struct ExecutableState {
    pub compiled: Compiled,
    pub options: Options,
    /// Global ids of the devices that it was compiled for.
    pub devices: Vec<usize>,
    /// Platform that it was compiled for.
    pub platform: String,
    pub fingerprint: String,
    pub outputs: ValueList,
    pub parameters: ValueList,
    pub costs: Attributes,
    /// Whether executions call custom call handlers with side effects.
    pub has_effects: bool,
    /// Whether executions call Python callbacks of JAX.
    pub calls_back: bool,
    /// Encoded module with its configuration, created on the first request.
    optimized: OnceLock<Vec<u8>>,
}

/// Output of the compiler.
pub(crate) enum Compiled {
    /// Program loaded by a client.
    Loaded(LoadedExecutable),
    /// Program compiled without a client.
    Alone(Arc<dyn Executable>),
}

impl Compiled {
    pub fn module(&self) -> &Module {
        match self {
            Compiled::Loaded(program) => program.module(),
            Compiled::Alone(program) => program.module(),
        }
    }

    pub fn signature(&self) -> &Signature {
        match self {
            Compiled::Loaded(program) => program.signature(),
            Compiled::Alone(program) => program.signature(),
        }
    }

    pub fn memory(&self) -> MemoryAnalysis {
        match self {
            Compiled::Loaded(program) => program.memory_analysis(),
            Compiled::Alone(program) => program.memory_analysis(),
        }
    }

    /// Returns the parameters and result of each device.
    fn program_shape(&self) -> ProgramShape {
        match self {
            Compiled::Loaded(program) => program.program_shape(),
            Compiled::Alone(program) => program.module().caller_layout(),
        }
    }

    /// Returns the encoded shardings of parameters and results; none for programs of one device.
    fn shardings(&self) -> xla_hlo::Result<[Vec<Vec<u8>>; 2]> {
        let Compiled::Loaded(program) = self else { return Ok(Default::default()) };
        let encoded = |shardings: Option<Vec<&LeafSharding>>| -> xla_hlo::Result<Vec<Vec<u8>>> {
            shardings.unwrap_or_default().into_iter().map(proto::serialize_sharding).collect()
        };
        Ok([encoded(program.argument_shardings())?, encoded(program.result_shardings())?])
    }

    /// Returns the module before compilation, for programs on several devices.
    fn source(&self) -> Option<&VerifiedModule> {
        match self {
            Compiled::Loaded(program) => program.source(),
            Compiled::Alone(_) => None,
        }
    }

    /// Returns the cost analysis of the platform or, if it has none, an analysis of the module.
    fn costs(&self) -> CostAnalysis {
        let told = match self {
            Compiled::Loaded(program) => program.cost_analysis(),
            Compiled::Alone(program) => program.cost_analysis(),
        };
        if told.flops.is_some() { told } else { CostAnalysis::of(self.module()) }
    }

    fn serialize(&self) -> Result<Vec<u8>, Status> {
        Ok(match self {
            Compiled::Loaded(program) => program.serialize()?,
            Compiled::Alone(program) => {
                serialized::check_independent(program.module())?;
                let serializer = program.serializer();
                serializer.ok_or_else(|| Error::unimplemented("the platform cannot serialise programs"))?.serialize()?
            }
        })
    }
}

impl ExecutableState {
    pub fn new(
        compiled: Compiled,
        options: Options,
        devices: Vec<usize>,
        platform: &str,
    ) -> xla_hlo::Result<ExecutableState> {
        let (signature, module) = (compiled.signature(), compiled.module());
        let layout = compiled.program_shape();
        let [of_arguments, of_results] = compiled.shardings()?;
        let (results, arguments) = (signature.results().iter(), signature.arguments().iter());
        Ok(ExecutableState {
            outputs: ValueList::new(&[layout.result], results.map(|leaf| &*leaf.shape), of_results),
            parameters: ValueList::new(&layout.parameters, arguments.map(|leaf| &*leaf.shape), of_arguments),
            has_effects: has_effects(module),
            calls_back: calls_back(module),
            fingerprint: Fingerprint::of(module).to_string(),
            costs: costs(&compiled.costs()),
            platform: platform.to_string(),
            optimized: OnceLock::new(),
            compiled,
            options,
            devices,
        })
    }

    /// Returns the optimized module with its configuration, an encoded `HloModuleProtoWithConfig`.
    pub fn optimized(&self) -> Result<&[u8], Status> {
        if let Some(bytes) = self.optimized.get() {
            return Ok(bytes);
        }
        let hlo_module = proto::serialize_module(self.compiled.module())?;
        let shape = HloModuleProto::decode(&*hlo_module).ok().and_then(|module| module.host_program_shape);
        let attributes = self.compiled.module().attributes();
        let config = HloModuleConfigProto {
            entry_computation_layout: shape,
            replica_count: self.options.replicas as i64,
            num_partitions: self.options.partitions as i64,
            alias_passthrough_params: attributes.alias_passthrough_params,
            allow_spmd_sharding_propagation_to_output: attributes.allow_spmd_sharding_propagation_to_output.clone(),
            allow_spmd_sharding_propagation_to_parameters: attributes
                .allow_spmd_sharding_propagation_to_parameters
                .clone(),
            static_device_assignment: (!self.options.portable).then(|| self.options.assignment(&self.devices)),
        };
        let message = HloModuleProtoWithConfig { hlo_module, config: Some(config) };
        Ok(self.optimized.get_or_init(|| message.encode_to_vec()))
    }

    /// Serializes the program with its options, as an encoded `ExecutableAndOptionsProto`. If the platform cannot
    /// serialize programs, it contains the module, which is compiled again when it is loaded.
    pub fn serialize(&self) -> Result<Vec<u8>, Status> {
        let serialized_executable = match self.compiled.serialize() {
            Err(error) if error.code == crate::Code::Unimplemented => match self.compiled.source() {
                Some(source) => proto::serialize_module(source)?,
                None => self.optimized()?.to_vec(),
            },
            other => other?,
        };
        let (compile_options, pjrt_client_name) = (self.options.bytes.clone(), self.platform.clone());
        Ok(ExecutableAndOptionsProto { serialized_executable, compile_options, pjrt_client_name }.encode_to_vec())
    }
}

fn has_effects(module: &Module) -> bool {
    let ops = module.ids().flat_map(|id| module[id].iter()).map(|(_, instruction)| instruction.op());
    ops.into_iter().any(|op| matches!(op, Op::CustomCall(_)) && op.has_side_effect())
}

/// Whether a program calls Python functions, detected by JAX's custom call targets.
fn calls_back(module: &Module) -> bool {
    const TARGETS: [&str; 3] =
        ["xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback", "xla_buffer_python_cpu_callback"];
    let ops = module.ids().flat_map(|id| module[id].iter()).map(|(_, instruction)| instruction.op());
    ops.into_iter().any(|op| matches!(op, Op::CustomCall(call) if TARGETS.contains(&call.target.as_str())))
}

/// Converts costs to attributes with XLA's names.
fn costs(costs: &CostAnalysis) -> Attributes {
    let named =
        [("flops", costs.flops), ("transcendentals", costs.transcendentals), ("bytes accessed", costs.bytes_accessed)];
    let known = named.into_iter().filter_map(|(name, cost)| Some((name.to_string(), Value::Real(cost? as f32))));
    Attributes::new(known.collect())
}
