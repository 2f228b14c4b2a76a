//! An executable: a compiled program, and what callers ask of it.

use std::sync::{Arc, OnceLock};

use prost::Message;
use xla_hlo::proto::messages::HloModuleProto;
use xla_hlo::{ArrayShape, Error, Layout, Module, proto};
use xla_service::{CostAnalysis, Executable, Fingerprint, LoadedExecutable, MemoryAnalysis, Signature};

use crate::abi::kinds;
use crate::border::{Handle, Hosted, Kind, Many};
use crate::client::MEMORY_KINDS;
use crate::element_type::number;
use crate::named::{Attributes, Value};
use crate::options::{ExecutableAndOptionsProto, HloModuleConfigProto, HloModuleProtoWithConfig, Options};
use crate::status::Status;

impl Kind for kinds::Executable {
    type Value = Arc<ExecutableState>;
    const NAME: &'static str = "PJRT_Executable";
}

/// A compiled program, on a client's devices or without any.
pub(crate) struct ExecutableState {
    pub compiled: Compiled,
    pub options: Options,
    /// The numbers of the devices it was compiled for.
    pub devices: Vec<usize>,
    /// The platform it was compiled for.
    pub platform: String,
    pub fingerprint: String,
    pub outputs: ArrayList,
    pub parameters: ArrayList,
    pub costs: Attributes,
    /// The encoded module, with its configuration.
    optimized: OnceLock<Vec<u8>>,
}

/// The compiler's product.
pub(crate) enum Compiled {
    /// Loaded by a client.
    Loaded(LoadedExecutable),
    /// Compiled without a client.
    Alone(Arc<dyn Executable>),
}

/// Parameters or results as arrays of their properties, for C to borrow.
#[derive(Default)]
pub(crate) struct ArrayList {
    pub types: Vec<i32>,
    /// The dimensions of all, one after another.
    pub dims: Vec<i64>,
    pub ranks: Vec<usize>,
    pub memory_kinds: Vec<Many<u8>>,
    pub memory_kind_sizes: Vec<usize>,
    /// An empty `OpSharding` says that a value is replicated.
    pub shardings: Vec<Many<u8>>,
    pub sharding_sizes: Vec<usize>,
    layouts: Vec<Layout>,
    /// Made when they are first asked for.
    hosted_layouts: OnceLock<Vec<Hosted<kinds::MemoryLayout>>>,
    layout_handles: OnceLock<Vec<Handle<kinds::MemoryLayout>>>,
}

impl ArrayList {
    fn new<'a>(shapes: impl Iterator<Item = &'a ArrayShape>) -> ArrayList {
        let mut list = ArrayList::default();
        for shape in shapes {
            list.types.push(number(shape.element_type()));
            list.dims.extend(shape.dims().iter().map(|&dim| dim as i64));
            list.ranks.push(shape.rank());
            list.memory_kinds.push(Many::of(MEMORY_KINDS[0].as_bytes()));
            list.memory_kind_sizes.push(MEMORY_KINDS[0].len());
            list.shardings.push(Many::of(b""));
            list.sharding_sizes.push(0);
            list.layouts.push(shape.layout().cloned().unwrap_or_else(|| Layout::row_major(shape.rank())));
        }
        list
    }

    /// Results, as a tuple of that many: XLA counts an empty tuple as one value, which has a sharding.
    fn of_results<'a>(shapes: impl Iterator<Item = &'a ArrayShape>) -> ArrayList {
        let mut list = ArrayList::new(shapes);
        if list.len() == 0 {
            list.shardings.push(Many::of(b""));
            list.sharding_sizes.push(0);
        }
        list
    }

    /// The layouts, for C to borrow.
    pub fn layout_handles(&self) -> &[Handle<kinds::MemoryLayout>] {
        self.layout_handles.get_or_init(|| {
            let make = || self.layouts.iter().cloned().map(Hosted::new).collect();
            self.hosted_layouts.get_or_init(make).iter().map(Hosted::handle).collect()
        })
    }

    /// Number of arrays.
    pub fn len(&self) -> usize {
        self.types.len()
    }
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

    /// The work as the platform tells it; where it does not, as its module shows it.
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
                let serializer = program.serializer();
                serializer.ok_or_else(|| Error::unimplemented("the platform cannot serialise programs"))?.serialize()?
            }
        })
    }
}

impl ExecutableState {
    pub fn new(compiled: Compiled, options: Options, devices: Vec<usize>, platform: &str) -> ExecutableState {
        let signature = compiled.signature();
        ExecutableState {
            outputs: ArrayList::of_results(signature.results().iter().map(|leaf| &*leaf.shape)),
            parameters: ArrayList::new(signature.arguments().iter().map(|leaf| &*leaf.shape)),
            fingerprint: Fingerprint::of(compiled.module()).to_string(),
            costs: costs(&compiled.costs()),
            platform: platform.to_string(),
            optimized: OnceLock::new(),
            compiled,
            options,
            devices,
        }
    }

    /// The module after passes, with its configuration: an encoded `HloModuleProtoWithConfig`.
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

    /// The program with its options: an encoded `ExecutableAndOptionsProto`. Where the platform cannot write programs
    /// down it is the module, to be compiled again.
    pub fn serialize(&self) -> Result<Vec<u8>, Status> {
        let serialized_executable = match self.compiled.serialize() {
            Err(error) if error.code == crate::Code::Unimplemented => self.optimized()?.to_vec(),
            other => other?,
        };
        let (compile_options, pjrt_client_name) = (self.options.bytes.clone(), self.platform.clone());
        Ok(ExecutableAndOptionsProto { serialized_executable, compile_options, pjrt_client_name }.encode_to_vec())
    }
}

/// Costs under XLA's names.
fn costs(costs: &CostAnalysis) -> Attributes {
    let named =
        [("flops", costs.flops), ("transcendentals", costs.transcendentals), ("bytes accessed", costs.bytes_accessed)];
    let known = named.into_iter().filter_map(|(name, cost)| Some((name.to_string(), Value::Real(cost? as f32))));
    Attributes::new(known.collect())
}
