//! Host code of the emulated GPU's kernels: loading and launching.
#![expect(unsafe_code, reason = "generated code is called through function pointers")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};
use xla_llvm::jit::LoadedCode;
use xla_llvm::simt::HostThread;

use super::fibers::{self, Stacks};
use super::function::{EmulatedFunction, KernelEntry};
use crate::program::image::{CodeObject, ModuleImage};

/// Kernels of a program.
pub(crate) struct EmulatedCode {
    functions: Vec<EmulatedFunction>,
    /// Index of the alternative that choices use.
    way: usize,
    /// Stacks that no launch uses at the moment.
    stacks: Mutex<Vec<Stacks>>,
    /// Keeps the functions alive.
    _code: LoadedCode,
}

impl std::fmt::Debug for EmulatedCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EmulatedCode({} functions)", self.functions.len())
    }
}

impl EmulatedCode {
    /// Links the code objects of an image. Its choices use alternative `way`.
    pub fn load(image: &ModuleImage, way: usize) -> Result<EmulatedCode> {
        let objects = image.objects.iter().map(|object| match object {
            CodeObject::HostObject(object) => Ok(object.clone()),
            CodeObject::Ptx(_) | CodeObject::Cubin(_) => {
                Err(Error::internal("code for a GPU cannot be loaded on the host"))
            }
        });
        let code = LoadedCode::link(&objects.collect::<Result<Vec<_>>>()?, &fibers::symbols())?;
        let mut functions = Vec::with_capacity(image.functions.len());
        for function in &image.functions {
            let address = code.address(&function.name)?;
            // SAFETY: `Emitter::simt_kernel` emits kernels for the host with exactly this signature, in this process or
            // in the one that wrote the serialised program, whose origin the caller of `LoadExecutable::load`
            // guarantees. `_code` keeps them alive.
            let entry = unsafe { std::mem::transmute::<*const std::ffi::c_void, KernelEntry>(address) };
            functions.push(EmulatedFunction {
                entry,
                threads: function.threads,
                shared_bytes: function.shared_bytes,
                together: function.together,
                parameters: function.parameters,
            });
        }
        Ok(EmulatedCode { functions, way, stacks: Mutex::default(), _code: code })
    }

    /// Returns the index of the alternative that choices use.
    pub fn way(&self) -> usize {
        self.way
    }

    /// Runs all blocks of a kernel. The arguments must be those that its launch was lowered with: addresses of live
    /// memory of the right sizes.
    pub fn launch(&self, function: usize, blocks: u32, arguments: &[u64]) -> Result<()> {
        let function = *self
            .functions
            .get(function)
            .ok_or_else(|| Error::internal(format!("the image has no kernel {function}")))?;
        if arguments.len() != function.parameters {
            return Err(Error::internal(format!(
                "a kernel has {} parameters but is launched with {} arguments",
                function.parameters,
                arguments.len()
            )));
        }
        let words = (function.shared_bytes as usize).div_ceil(16);
        let mut shared: Vec<u128> = Vec::new();
        xla_hlo::out_of_memory::fallible(|| shared.try_reserve_exact(words)).map_err(|_| {
            Error::resource_exhausted(format!(
                "{} bytes of shared memory for a kernel cannot be allocated",
                function.shared_bytes
            ))
        })?;
        shared.resize(words, 0);
        let mut stacks = self.stacks().pop().unwrap_or_default();
        for block in 0..blocks {
            let thread = |number| HostThread {
                thread: number,
                block,
                threads: function.threads,
                blocks,
                shared: shared.as_mut_ptr().cast(),
            };
            if function.together {
                fibers::run_block(&function, arguments, &mut stacks, thread)?;
            } else {
                (0..function.threads).map(thread).for_each(|mut thread| {
                    // SAFETY: the code was generated for launches like this one, by this build or by the writer of the
                    // serialised program, which is trusted (above): it reads and writes the arrays whose addresses are
                    // its arguments, which the launcher holds, and its shared memory.
                    unsafe { (function.entry)(arguments.as_ptr(), &raw mut thread) }
                });
            }
        }
        self.stacks().push(stacks);
        Ok(())
    }

    fn stacks(&self) -> MutexGuard<'_, Vec<Stacks>> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
