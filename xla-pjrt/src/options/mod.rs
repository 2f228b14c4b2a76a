//! Compile options from the caller.

mod messages;
mod overrides;

use prost::Message;
use xla_hlo::proto::messages::ShapeProto;
use xla_hlo::{ArrayShape, Layout, Module, Shape};
use xla_service::topology::Topology;
use xla_service::{CompileOptions, OptLevel};

use messages::{CompileOptionsProto, ComputationDeviceProto, ExecutableBuildOptionsProto};
pub(crate) use messages::{
    DeviceAssignmentProto, ExecutableAndOptionsProto, HloModuleConfigProto, HloModuleProtoWithConfig,
};

use crate::element_type::message_number;
use crate::status::Status;

/// Effort levels, with their numbers in XLA.
const EFFORT: [(i32, OptLevel); 3] = [(9, OptLevel::O0), (19, OptLevel::O1), (39, OptLevel::O3)];

/// Compile options, decoded.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Original message.
    pub bytes: Vec<u8>,
    message: CompileOptionsProto,
    pub service: CompileOptions,
    pub replicas: usize,
    pub partitions: usize,
    /// Whether a program for one device may run on any device.
    pub portable: bool,
}

impl Options {
    /// Reads an encoded `CompileOptionsProto`.
    pub fn read(bytes: &[u8]) -> Result<Options, Status> {
        let message = CompileOptionsProto::decode(bytes)
            .map_err(|error| Status::invalid_argument(format!("the compile options are malformed: {error}")))?;
        // Denormals are flushed as in XLA:CPU, which JAX's tests expect. Excess precision is allowed as in XLA:GPU.
        let mut service = CompileOptions { flush_denormals: true, excess_precision: true, ..CompileOptions::default() };
        let build = message.executable_build_options.clone().unwrap_or_default();
        if let Some((_, level)) = EFFORT.iter().find(|(number, _)| *number == build.optimization_level) {
            service.opt_level = *level;
        }
        let flags = build.debug_options.unwrap_or_default();
        overrides::dump_to(&flags.xla_dump_to, &mut service)?;
        overrides::apply(&message.env_option_overrides, &mut service)?;
        let count = |what: &str, count: i64| {
            let error = || Status::invalid_argument(format!("the compile options request {count} {what}"));
            usize::try_from(count.max(i64::from(count == 0))).map_err(|_| error())
        };
        Ok(Options {
            bytes: bytes.to_vec(),
            replicas: count("replicas", build.num_replicas)?,
            partitions: count("partitions", build.num_partitions)?,
            portable: message.compile_portable_executable,
            service,
            message,
        })
    }

    fn build(&self) -> Option<&ExecutableBuildOptionsProto> {
        self.message.executable_build_options.as_ref()
    }

    /// Returns the global ids of the devices, replica by replica: the ones that the options assign, otherwise
    /// consecutive ones from the local device with the device ordinal on, or the topology's default.
    /// An invalid argument if the topology has fewer devices, or if the options assign a device that it does not have.
    pub fn devices(&self, topology: &Topology) -> Result<Vec<usize>, Status> {
        let count = topology.devices().len();
        let wanted = self.replicas.checked_mul(self.partitions);
        let wanted = wanted
            .ok_or_else(|| Status::invalid_argument("the compile options request too many replicas and partitions"))?;
        if wanted > count {
            return Err(Status::invalid_argument(format!(
                "the compile options request {} replicas of {} partitions, but the topology has {count} devices",
                self.replicas, self.partitions
            )));
        }
        let devices = self.requested(topology, wanted)?;
        match devices.iter().find(|&&device| device >= count) {
            None => Ok(devices),
            Some(device) => Err(Status::invalid_argument(format!(
                "the compile options assign device {device}, but the topology has {count} devices, from 0 on"
            ))),
        }
    }

    fn requested(&self, topology: &Topology, wanted: usize) -> Result<Vec<usize>, Status> {
        let Some(assignment) = self.build().and_then(|build| build.device_assignment.as_ref()) else {
            let ordinal = self.build().map_or(0, |build| usize::try_from(build.device_ordinal).unwrap_or(0));
            return Ok(match ordinal {
                0 => topology.default_assignment(wanted),
                _ => (topology.id(ordinal)..).take(wanted).collect(),
            });
        };
        let device = |replica: usize, partition: usize| {
            let id = assignment.computation_devices.get(partition)?.replica_device_ids.get(replica)?;
            usize::try_from(*id).ok()
        };
        let all = (0..self.replicas).flat_map(|replica| (0..self.partitions).map(move |part| device(replica, part)));
        let devices: Option<Vec<usize>> = all.collect();
        devices.filter(|devices| devices.len() == wanted).ok_or_else(|| {
            Status::invalid_argument(format!(
                "the device assignment does not name {} replicas of {} partitions",
                self.replicas, self.partitions
            ))
        })
    }

    /// Returns the device assignment message for these devices.
    pub fn assignment(&self, devices: &[usize]) -> DeviceAssignmentProto {
        let id = |replica: usize, part: usize| devices[replica * self.partitions + part] as i64;
        let of_partition = |part| ComputationDeviceProto {
            replica_device_ids: (0..self.replicas).map(|replica| id(replica, part)).collect(),
        };
        DeviceAssignmentProto {
            replica_count: self.replicas as i32,
            computation_count: self.partitions as i32,
            computation_devices: (0..self.partitions).map(of_partition).collect(),
        }
    }

    /// Applies the options to a module: replica and partition counts, layouts, and whether propagation may change
    /// shardings.
    pub fn apply(&self, module: &mut Module) -> Result<(), Status> {
        let mut layout = module.entry_layout();
        let layouts = &self.message.argument_layouts;
        if !layouts.is_empty() {
            if layouts.len() != layout.parameters.len() {
                return Err(Status::invalid_argument(format!(
                    "the number of argument layouts ({}) differs from the number of parameters ({})",
                    layouts.len(),
                    layout.parameters.len()
                )));
            }
            for (parameter, asked) in layout.parameters.iter_mut().zip(layouts) {
                *parameter = with_layout(parameter, asked)?;
            }
        }
        let result = self.build().and_then(|build| build.result_layout.as_ref());
        if let Some(asked) = result {
            layout.result = with_layout(&layout.result, asked)?;
        }
        let attributes = module.attributes_mut();
        if result.is_some() || !layouts.is_empty() {
            attributes.entry_computation_layout = Some(layout);
        }
        attributes.replica_count = self.replicas as u64;
        attributes.num_partitions = self.partitions as u64;
        if let Some(build) = self.build() {
            attributes.alias_passthrough_params |= build.alias_passthrough_params;
            let outputs = &build.allow_spmd_sharding_propagation_to_output;
            attributes.allow_spmd_sharding_propagation_to_output.clone_from(outputs);
            let parameters = &build.allow_spmd_sharding_propagation_to_parameters;
            attributes.allow_spmd_sharding_propagation_to_parameters.clone_from(parameters);
        }
        Ok(())
    }
}

/// Returns the shape with the layouts of a message.
fn with_layout(shape: &Shape, asked: &ShapeProto) -> Result<Shape, Status> {
    let unfit = || Status::invalid_argument(format!("a requested layout does not fit {shape}"));
    match shape {
        Shape::Array(array) => array_with_layout(array, asked).map(Shape::Array).ok_or_else(unfit),
        Shape::Tuple(elements) if elements.len() == asked.tuple_shapes.len() => {
            let elements = elements.iter().zip(&asked.tuple_shapes);
            elements.map(|(element, asked)| with_layout(element, asked)).collect::<Result<_, _>>().map(Shape::Tuple)
        }
        Shape::Tuple(elements) => match &elements[..] {
            // The message has a single result, but the module returns a tuple of it.
            [element] => Ok(Shape::Tuple(vec![with_layout(element, asked)?])),
            _ => Err(unfit()),
        },
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Ok(shape.clone()),
    }
}

fn array_with_layout(array: &ArrayShape, asked: &ShapeProto) -> Option<ArrayShape> {
    let same_dims =
        asked.dimensions.iter().map(|&dim| usize::try_from(dim).ok()).eq(array.dims().iter().map(|&d| Some(d)));
    if !same_dims || asked.element_type != message_number(array.element_type()) {
        return None;
    }
    let Some(layout) = &asked.layout else { return Some(array.clone()) };
    let order = layout.minor_to_major.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<Vec<_>>>()?;
    let layout = Layout::from_minor_to_major(order);
    let fits = layout.is_permutation_of(array.rank());
    fits.then(|| array.clone().with_layout(Some(layout).filter(|_| array.rank() > 0)))
}
