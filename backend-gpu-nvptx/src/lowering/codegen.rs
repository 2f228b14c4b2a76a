//! Generates PTX, or code for the host, of all kernels: a few LLVM modules, side by side.

use xla_hlo::{Error, Result};
use xla_llvm::codegen::{self, CodeKind};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::Kernel;
use xla_llvm::parallel;
use xla_llvm::target::{MachineOptions, Simt, Target};

use crate::lowering::kernels::KernelCode;
use crate::program::image::{CodeObject, KernelFunction, ModuleImage};

/// Kernels in one LLVM module: as many as amortise its fixed cost, as few as keep all threads busy.
const KERNELS_A_MODULE: usize = 8;
/// Threads of a block of a kernel whose threads are on their own.
const BLOCK: u32 = 128;

/// Output of code generation.
pub(crate) struct GeneratedCode {
    pub image: ModuleImage,
    /// The kernels, as their functions.
    pub kernels: Vec<Kernel>,
    /// LLVM IR and PTX of each code object, where they were requested.
    pub texts: Vec<(String, String)>,
}

/// Generates the code of kernels for a target with threads.
pub(crate) fn generate(
    target: &Target,
    codes: &[KernelCode<'_>],
    threads: usize,
    with_texts: bool,
) -> Result<GeneratedCode> {
    let chunk = codes.len().div_ceil(threads.max(1)).clamp(1, KERNELS_A_MODULE);
    let jobs = codes.chunks(chunk).enumerate().collect();
    let objects = parallel::map(jobs, threads, |(number, codes)| object(target, number * chunk, codes, with_texts))?;
    let mut code = GeneratedCode { image: ModuleImage::default(), kernels: Vec::new(), texts: Vec::new() };
    for (number, generated) in objects.into_iter().enumerate() {
        if let Some(text) = generated.text {
            code.texts.push((format!("kernels.{number}.ll"), text));
        }
        if let (CodeObject::Ptx(ptx), true) = (&generated.object, with_texts) {
            code.texts.push((format!("kernels.{number}.ptx"), ptx.clone()));
        }
        code.image.objects.push(generated.object);
        code.image.functions.extend(generated.kernels.iter().map(|(kernel, parameters)| KernelFunction {
            name: kernel.name.clone(),
            object: number,
            threads: block_threads(kernel),
            shared_bytes: launch_shared_bytes(target, kernel),
            together: kernel.block.is_some(),
            parameters: *parameters,
        }));
        code.kernels.extend(generated.kernels.into_iter().map(|(kernel, _)| kernel));
    }
    Ok(code)
}

/// Shared memory that a launch must bring; in PTX, kernels declare their own.
fn launch_shared_bytes(target: &Target, kernel: &Kernel) -> u32 {
    if target.simt() == Some(Simt::Nvptx) { 0 } else { kernel.shared_bytes as u32 }
}

/// Threads of a block of a kernel.
fn block_threads(kernel: &Kernel) -> u32 {
    kernel.block.unwrap_or(BLOCK)
}

/// Blocks that a kernel is launched with; 0 where there is nothing to do.
pub(crate) fn blocks(kernel: &Kernel) -> Result<u32> {
    let blocks = match kernel.block {
        Some(_) => kernel.work_items,
        None => kernel.work_items.div_ceil(BLOCK.into()),
    };
    u32::try_from(blocks).ok().filter(|&blocks| i32::try_from(blocks).is_ok()).ok_or_else(|| {
        Error::resource_exhausted(format!(
            "kernel {} takes {blocks} blocks, a GPU has at most {}",
            kernel.name,
            i32::MAX
        ))
    })
}

struct GeneratedObject {
    object: CodeObject,
    /// With the number of arguments of each.
    kernels: Vec<(Kernel, usize)>,
    text: Option<String>,
}

fn object(target: &Target, first: usize, codes: &[KernelCode<'_>], with_text: bool) -> Result<GeneratedObject> {
    let _span = tracing::debug_span!("kernels", first, count = codes.len()).entered();
    let (options, kind) = match target.simt() {
        Some(Simt::Nvptx) => {
            let passes = "default<O2>".to_string();
            (MachineOptions { passes, ..Default::default() }, CodeKind::Assembly)
        }
        Some(Simt::Host) | None => (MachineOptions::default(), CodeKind::Object),
    };
    let (code, (kernels, text)) = codegen::generate(target, &options, kind, |context| {
        let emitter = Emitter::new(context, &format!("kernels.{first}"), target, EmitOptions::default());
        let mut kernels = Vec::with_capacity(codes.len());
        for (i, code) in codes.iter().enumerate() {
            let kernel = code.emit(&emitter, &kernel_name(first + i, code))?;
            emitter.set_block_size(&kernel.name, block_threads(&kernel));
            kernels.push((kernel, code.parameters()));
        }
        let module = emitter.finish()?;
        let text = with_text.then(|| {
            let comments = kernels.iter().map(|(kernel, _)| kernel.comment());
            comments.chain([module.print_to_string().to_string()]).collect()
        });
        Ok((module, (kernels, text)))
    })?;
    let object = match kind {
        CodeKind::Assembly => CodeObject::Ptx(String::from_utf8_lossy(&code).into_owned()),
        CodeKind::Object => CodeObject::HostObject(code),
    };
    Ok(GeneratedObject { object, kernels, text })
}

/// A symbol that a person finds again in a profile: an instruction's name, and the kernel's number.
fn kernel_name(number: usize, code: &KernelCode<'_>) -> String {
    let readable: String = code.label().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("k{number}_{readable}")
}
