//! Executables: names, sizes, properties of parameters and results, serialized forms.

mod loaded;
mod state;
mod values;

pub(crate) use loaded::{
    LoadedState, addressable_device_logical_ids, addressable_devices, delete, destroy_loaded, device_assignment,
    is_deleted, loaded_executable, loaded_fingerprint,
};
pub(crate) use state::{Compiled, ExecutableState};
pub(crate) use values::{Value, ValueList};

use crate::abi::executable::{
    ExecutableDestroyArgs, ExecutableFingerprintArgs, ExecutableGetCompileOptionsArgs,
    ExecutableGetCompiledMemoryStatsArgs, ExecutableGetCostAnalysisArgs, ExecutableNameArgs, ExecutableNumOutputsArgs,
    ExecutableNumPartitionsArgs, ExecutableNumReplicasArgs, ExecutableOptimizedProgramArgs,
    ExecutableOutputDimensionsArgs, ExecutableOutputElementTypesArgs, ExecutableOutputMemoryKindsArgs,
    ExecutableParameterMemoryKindsArgs, ExecutableSerializeArgs, ExecutableSizeOfGeneratedCodeInBytesArgs,
};
use crate::abi::kinds;
use crate::ffi::{Deleter, List, Many, Text};
use crate::serialized::hand_out;
use crate::status::Status;

pub(crate) fn destroy(args: &ExecutableDestroyArgs) -> Result<(), Status> {
    args.executable.destroy()
}

pub(crate) fn name(args: &ExecutableNameArgs) -> Result<(), Status> {
    args.executable_name.set(Text::text(args.executable.get()?.compiled.module().name()));
    Ok(())
}

pub(crate) fn num_replicas(args: &ExecutableNumReplicasArgs) -> Result<(), Status> {
    args.num_replicas.set(args.executable.get()?.options.replicas);
    Ok(())
}

pub(crate) fn num_partitions(args: &ExecutableNumPartitionsArgs) -> Result<(), Status> {
    args.num_partitions.set(args.executable.get()?.options.partitions);
    Ok(())
}

pub(crate) fn num_outputs(args: &ExecutableNumOutputsArgs) -> Result<(), Status> {
    args.num_outputs.set(args.executable.get()?.outputs.len());
    Ok(())
}

pub(crate) fn size_of_generated_code(args: &ExecutableSizeOfGeneratedCodeInBytesArgs) -> Result<(), Status> {
    args.size_in_bytes.set(args.executable.get()?.compiled.memory().code_bytes as i64);
    Ok(())
}

pub(crate) fn fingerprint(args: &ExecutableFingerprintArgs) -> Result<(), Status> {
    args.executable_fingerprint.set(Text::text(&args.executable.get()?.fingerprint));
    Ok(())
}

pub(crate) fn cost_analysis(args: &ExecutableGetCostAnalysisArgs) -> Result<(), Status> {
    args.properties.set(args.executable.get()?.costs.counted());
    Ok(())
}

pub(crate) fn compiled_memory_stats(args: &ExecutableGetCompiledMemoryStatsArgs) -> Result<(), Status> {
    let memory = args.executable.get()?.compiled.memory();
    let [code, arguments, outputs, aliases, temporaries] =
        [memory.code_bytes, memory.argument_bytes, memory.output_bytes, memory.alias_bytes, memory.temporary_bytes]
            .map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    args.generated_code_size_in_bytes.set(code);
    args.argument_size_in_bytes.set(arguments);
    args.output_size_in_bytes.set(outputs);
    args.alias_size_in_bytes.set(aliases);
    args.temp_size_in_bytes.set(temporaries);
    for host in [
        &args.host_generated_code_size_in_bytes,
        &args.host_argument_size_in_bytes,
        &args.host_output_size_in_bytes,
        &args.host_alias_size_in_bytes,
        &args.host_temp_size_in_bytes,
        &args.indefinite_allocations,
    ] {
        host.set(0);
    }
    let total = arguments.saturating_add(outputs).saturating_add(temporaries).saturating_sub(aliases);
    args.peak_memory_in_bytes.set(total);
    args.total_size_in_bytes.set(total);
    args.total_allocation_bytes.set(total);
    args.peak_unpadded_heap_bytes.set(total);
    Ok(())
}

pub(crate) fn output_element_types(args: &ExecutableOutputElementTypesArgs) -> Result<(), Status> {
    args.output_types.set(List::of(&args.executable.get()?.outputs.types));
    Ok(())
}

pub(crate) fn output_dimensions(args: &ExecutableOutputDimensionsArgs) -> Result<(), Status> {
    let outputs = &args.executable.get()?.outputs;
    args.num_outputs.set(outputs.len());
    args.dims.set(Many::of(&outputs.dims));
    args.dim_sizes.set(Many::of(&outputs.ranks));
    Ok(())
}

pub(crate) fn output_memory_kinds(args: &ExecutableOutputMemoryKindsArgs) -> Result<(), Status> {
    let outputs = &args.executable.get()?.outputs;
    args.num_outputs.set(outputs.len());
    args.memory_kinds.set(Many::of(&outputs.memory_kinds));
    args.memory_kind_sizes.set(Many::of(&outputs.memory_kind_sizes));
    Ok(())
}

pub(crate) fn parameter_memory_kinds(args: &ExecutableParameterMemoryKindsArgs) -> Result<(), Status> {
    let parameters = &args.executable.get()?.parameters;
    args.num_parameters.set(parameters.len());
    args.memory_kinds.set(Many::of(&parameters.memory_kinds));
    args.memory_kind_sizes.set(Many::of(&parameters.memory_kind_sizes));
    Ok(())
}

/// `PJRT_Executable_OptimizedProgram`: returns the optimized program, or its size if the caller has not allocated
/// memory yet.
pub(crate) fn optimized_program(args: &ExecutableOptimizedProgramArgs) -> Result<(), Status> {
    let program = args.executable.get()?.optimized()?;
    args.program.update(|target| {
        target.format.set(Text::text("hlo_with_config"));
        if !target.code.is_null() {
            if target.code_size.get() < program.len() {
                let message = format!(
                    "the program has {} bytes, but the caller has room for {}",
                    program.len(),
                    target.code_size.get()
                );
                return Err(Status::invalid_argument(message));
            }
            target.code.write(program)?;
        }
        target.code_size.set(program.len());
        Ok(())
    })
}

pub(crate) fn serialize(args: &ExecutableSerializeArgs) -> Result<(), Status> {
    let (bytes, object) = hand_out(args.executable.get()?.serialize()?);
    args.serialized_bytes.set(bytes);
    args.serialized_executable.set(object);
    args.serialized_executable_deleter.set(Deleter::of::<kinds::Serialized>());
    Ok(())
}

pub(crate) fn compile_options(args: &ExecutableGetCompileOptionsArgs) -> Result<(), Status> {
    let (bytes, object) = hand_out(args.executable.get()?.options.bytes.clone());
    args.serialized_bytes.set(bytes);
    args.serialized_compile_options.set(object);
    args.serialized_compile_options_deleter.set(Deleter::of::<kinds::Serialized>());
    Ok(())
}
