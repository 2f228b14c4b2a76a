//! Code generation: kernels to PTX, or to host code for the emulated GPU.

use xla_hlo::{Error, Result};
use xla_llvm::codegen::CodeKind;
use xla_llvm::driver::{CodegenDriver, EmittedModule, ModuleSize};
use xla_llvm::emitter::EmitOptions;
use xla_llvm::fused::{Kernel, KernelCode};
use xla_llvm::simt::{Swizzle, TensorMap};
use xla_llvm::target::{CodegenLevel, MachineOptions, Passes, Simt, Target};

use crate::lowering::kernels::Kernels;
use crate::program::image::{CodeObject, KernelFunction, ModuleImage};
use crate::program::kernel_map::{KernelMap, MapSwizzle};

/// Number of threads of a block for kernels with independent threads.
const BLOCK: u32 = 128;

/// Output of code generation.
pub(crate) struct GeneratedCode {
    pub image: ModuleImage,
    /// Generated kernels, in the order of their functions.
    pub kernels: Vec<Kernel>,
    /// LLVM IR and PTX of each code object, as file name and text, if requested.
    pub texts: Vec<(String, String)>,
}

/// Generates the code of kernels for a SIMT target.
pub(crate) fn generate(
    target: &Target,
    kernels: &Kernels<'_>,
    (modules, threads): (ModuleSize, usize),
    emission: EmitOptions,
    with_texts: bool,
) -> Result<GeneratedCode> {
    let (machine, kind) = match target.simt() {
        Some(Simt::Nvptx) => {
            (MachineOptions { passes: Some(Passes::new("default<O2>")), ..Default::default() }, CodeKind::Assembly)
        }
        // Emulation is for tests: most kernels run once, for less time than it takes to generate them.
        Some(Simt::Host) | None => {
            (MachineOptions { level: CodegenLevel::None, ..Default::default() }, CodeKind::Object)
        }
    };
    let codes = kernels.codes();
    let driver = CodegenDriver { target, threads, modules, with_texts, emission, kind };
    let emitted = driver.emit_kernels(codes, &machine, |emitter, number, code| {
        let kernel = code.emit(emitter, &kernel_name(number, code))?;
        emitter.set_block_size(&kernel.name, block_threads(&kernel));
        emitter.set_unwritten(&kernel.name, kernels.unwritten(number));
        Ok(kernel)
    })?;
    let (modules, emitted): (Vec<EmittedModule>, Vec<Vec<Kernel>>) = emitted.into_iter().unzip();
    let mut generated = GeneratedCode { image: ModuleImage::default(), kernels: Vec::new(), texts: Vec::new() };
    for (object, (module, emitted)) in driver.generate(modules)?.into_iter().zip(emitted).enumerate() {
        generated.texts.extend(module.text.map(|text| (format!("{}.ll", module.name), text)));
        let code = match kind {
            CodeKind::Assembly => CodeObject::Ptx(String::from_utf8_lossy(&module.code).into_owned()),
            CodeKind::Object => CodeObject::HostObject(module.code),
        };
        if let (CodeObject::Ptx(ptx), true) = (&code, with_texts) {
            generated.texts.push((format!("{}.ptx", module.name), ptx.clone()));
        }
        generated.image.objects.push(code);
        let first = generated.kernels.len();
        generated.image.functions.extend(emitted.iter().enumerate().map(|(number, kernel)| KernelFunction {
            name: kernel.name.clone(),
            object,
            threads: block_threads(kernel),
            shared_bytes: launch_shared_bytes(target, kernel),
            together: kernel.block.is_some(),
            parameters: kernels.parameters(first + number),
            maps: kernel_maps(target, kernel),
        }));
        generated.kernels.extend(emitted);
    }
    Ok(generated)
}

/// Returns the shared memory that a launch must provide: all of it on the host, the dynamic part in PTX.
fn launch_shared_bytes(target: &Target, kernel: &Kernel) -> u32 {
    (if target.simt() == Some(Simt::Nvptx) { kernel.dynamic_shared_bytes } else { kernel.shared_bytes }) as u32
}

/// Returns the tensor maps that a launch must encode; none on the host.
fn kernel_maps(target: &Target, kernel: &Kernel) -> Vec<KernelMap> {
    if target.simt() == Some(Simt::Nvptx) { kernel.maps.iter().map(kernel_map).collect() } else { Vec::new() }
}

fn kernel_map(map: &TensorMap) -> KernelMap {
    let TensorMap { array, element_bytes, extents, strides, box_extents, swizzle } = map.clone();
    let swizzle = match swizzle {
        Swizzle::Bytes32 => MapSwizzle::Bytes32,
        Swizzle::Bytes64 => MapSwizzle::Bytes64,
        Swizzle::Bytes128 => MapSwizzle::Bytes128,
    };
    KernelMap { array, element_bytes, extents, strides, box_extents, swizzle }
}

/// Returns the number of threads of a block.
fn block_threads(kernel: &Kernel) -> u32 {
    kernel.block.unwrap_or(BLOCK)
}

/// Returns the number of blocks of a launch; 0 if there is no work.
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

/// Returns a symbol that is readable in a profile: the kernel's number and an instruction's name.
fn kernel_name(number: usize, code: &KernelCode<'_>) -> String {
    let readable: String = code.label().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("k{number}_{readable}")
}
