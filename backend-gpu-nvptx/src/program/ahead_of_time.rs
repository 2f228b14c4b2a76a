//! Files of a program compiled ahead of time: the executable, and its code for inspection.

use std::sync::Arc;

use serde::Serialize;
use xla_hlo::{Error, Result, ResultExt};
use xla_service::compiler::AotFile;
use xla_service::{AotCompilationOptions, Assembler, ConstantsIn, Contraction, Optimize, OptimizedModule, Relocation};

use crate::executable::Compiled;
use crate::program::compiled_for::CompiledFor;
use crate::program::image::{CodeObject, KernelFunction};
use crate::program::launches::LaunchFacts;
use crate::program::serialized::DeviceProgram;
use crate::ptx::assembler::{Assemble, Cubin};
use crate::ptx::ptxas::Ptxas;

/// Returns the files of a program: `NAME.xlax`, and for GPUs `kernels.N.ptx`. With an assembler also `kernels.N.cubin`,
/// and its report in `kernels.json`.
pub(crate) fn files(
    platform: &str,
    module: &OptimizedModule,
    (compiled, strategies): (Compiled, &[String]),
    options: &AotCompilationOptions,
) -> Result<Vec<AotFile>> {
    let launches = LaunchFacts::of_kernels(&compiled.program, &compiled.device);
    let mut device = Arc::unwrap_or_clone(compiled.device);
    let mut files = Vec::new();
    for (number, object) in device.image.objects.iter().enumerate() {
        let (ending, bytes) = match object {
            CodeObject::Ptx(text) => ("ptx", text.clone().into_bytes()),
            CodeObject::Cubin(bytes) => ("cubin", bytes.clone()),
            CodeObject::HostObject(bytes) => ("o", bytes.clone()),
        };
        files.push(AotFile { name: format!("kernels.{number}.{ending}"), bytes });
    }
    if let CompiledFor::Gpu(architecture) = device.compiled_for.clone()
        && let Some(ptxas) = assembler(&options.assembler)?
    {
        let cubins = assemble(&ptxas, &device, &architecture)?;
        files.push(report(&ptxas, &architecture, &device, &cubins, (strategies, &launches))?);
        for (number, cubin) in cubins.iter().enumerate() {
            files.extend(
                cubin
                    .as_ref()
                    .map(|cubin| AotFile { name: format!("kernels.{number}.cubin"), bytes: cubin.bytes.clone() }),
            );
        }
        device.cubins = cubins.into_iter().map(|cubin| cubin.map(|cubin| cubin.bytes)).collect();
    }
    let name = options.name.as_ref().or(options.symbols.first()).cloned().unwrap_or_else(|| file_name(module.name()));
    files.push(AotFile { name: format!("{name}.xlax"), bytes: device.write(platform, module)? });
    Ok(files)
}

/// Rejects options that only apply to object files.
pub(crate) fn refuse_what_is_for_objects(options: &AotCompilationOptions) -> Result<()> {
    let given = [
        (!options.cpus.is_empty(), "cpu"),
        (!options.features.is_empty(), "features"),
        (options.abi.is_some(), "abi"),
        (options.relocation != Relocation::default(), "relocation"),
        (options.contraction != Contraction::default(), "no-contract"),
        (options.symbols.len() > 1, "symbol, more than once,"),
        (options.namespace.is_some(), "namespace"),
        (options.optimize != Optimize::default(), "optimize-for"),
        (options.threads.is_some(), "run-threads"),
        (options.stack_limit.is_some(), "stack-limit"),
        (options.archive, "archive"),
        (options.constants != ConstantsIn::default(), "constants"),
        (!options.extras.is_empty(), "emit"),
        (!options.externals.is_empty(), "external"),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, name)) => Err(Error::invalid_argument(format!(
            "the option {name} applies only to object files for CPUs; leave it out for a GPU"
        ))),
        None => Ok(()),
    }
}

fn assembler(which: &Assembler) -> Result<Option<Ptxas>> {
    match which {
        Assembler::None => Ok(None),
        Assembler::At(path) => Ptxas::find(Some(path)).map(Some),
        // PTX suffices: the driver has its own assembler.
        Assembler::IfFound => Ok(Ptxas::find(None).ok()),
    }
}

/// Assembles each code object that is PTX.
fn assemble(ptxas: &Ptxas, device: &DeviceProgram, architecture: &str) -> Result<Vec<Option<Cubin>>> {
    let objects = device.image.objects.iter().enumerate();
    let cubins = objects.map(|(number, object)| match object {
        CodeObject::Ptx(text) => {
            ptxas.assemble(text, architecture).context(|| format!("kernels.{number}.ptx")).map(Some)
        }
        CodeObject::Cubin(_) | CodeObject::HostObject(_) => Ok(None),
    });
    cubins.collect()
}

/// Content of `kernels.json`.
#[derive(Serialize)]
struct Assembled<'a> {
    architecture: &'a str,
    /// Name of the GPU model that the program was planned for.
    planned_for: &'a str,
    ptxas: &'a str,
    warnings: Vec<&'a str>,
    kernels: Vec<KernelFacts<'a>>,
}

/// Resources and launches of a kernel.
#[derive(Serialize)]
struct KernelFacts<'a> {
    name: &'a str,
    object: usize,
    threads: u32,
    registers: u32,
    spill_bytes: u32,
    stack_bytes: u32,
    shared_bytes: u32,
    strategy: &'a str,
    blocks: u32,
    elements_read: u64,
    bytes_read: u64,
    elements_written: u64,
    bytes_written: u64,
}

fn report(
    ptxas: &Ptxas,
    architecture: &str,
    device: &DeviceProgram,
    cubins: &[Option<Cubin>],
    (strategies, launches): (&[String], &[LaunchFacts]),
) -> Result<AotFile> {
    let facts = |function: &'_ KernelFunction| {
        let report = cubins.get(function.object)?.as_ref()?;
        report.report.kernels.iter().find(|kernel| kernel.name == function.name)
    };
    let kernels = device.image.functions.iter().enumerate().filter_map(|(number, function)| {
        let launch = launches.get(number).copied().unwrap_or_default();
        let said = facts(function)?;
        Some(KernelFacts {
            name: &function.name,
            object: function.object,
            threads: function.threads,
            registers: said.registers,
            spill_bytes: said.spill_store_bytes.saturating_add(said.spill_load_bytes),
            stack_bytes: said.stack_bytes,
            // Static shared memory of the code, and dynamic one of the launch.
            shared_bytes: said.shared_bytes.saturating_add(function.shared_bytes),
            strategy: strategies.get(number).map_or("", String::as_str),
            blocks: launch.blocks,
            elements_read: launch.elements_read,
            bytes_read: launch.bytes_read,
            elements_written: launch.elements_written,
            bytes_written: launch.bytes_written,
        })
    });
    let warnings = cubins.iter().flatten().flat_map(|cubin| cubin.report.warnings.iter().map(String::as_str));
    let assembled = Assembled {
        architecture,
        planned_for: &device.gpu.name,
        ptxas: ptxas.version(),
        warnings: warnings.collect(),
        kernels: kernels.collect(),
    };
    let bytes = serde_json::to_vec_pretty(&assembled);
    let bytes = bytes.map_err(|e| Error::internal(format!("the report of kernels cannot be written: {e}")))?;
    Ok(AotFile { name: "kernels.json".to_string(), bytes })
}

/// Converts a module's name to a file name.
fn file_name(module: &str) -> String {
    match module.trim_start_matches('.') {
        "" => "module".to_string(),
        name => xla_service::file_name(name),
    }
}
