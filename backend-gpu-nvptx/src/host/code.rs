//! Code for the host, loaded, and its launches.
#![expect(unsafe_code, reason = "generated code is called through function pointers")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};
use xla_llvm::jit::LoadedCode;
use xla_llvm::simt::HostThread;

use super::fibers::{self, Stacks};
use crate::device::{Image, Part};

/// `void kernel(ptr words, ptr thread)`.
pub(super) type Entry = unsafe extern "C" fn(*const u64, *mut HostThread);

/// The kernels of a program.
pub(crate) struct HostCode {
    functions: Vec<Loaded>,
    /// Stacks that no launch uses now.
    stacks: Mutex<Vec<Stacks>>,
    /// Keeps the functions alive.
    _code: LoadedCode,
}

/// A kernel.
#[derive(Clone, Copy)]
pub(super) struct Loaded {
    pub entry: Entry,
    pub threads: u32,
    pub shared_bytes: u32,
    pub together: bool,
    pub parameters: usize,
}

impl std::fmt::Debug for HostCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostCode({} functions)", self.functions.len())
    }
}

impl HostCode {
    /// Links the parts of an image.
    pub fn load(image: &Image) -> Result<HostCode> {
        let objects = image.parts.iter().map(|part| match part {
            Part::HostObject(object) => Ok(object.clone()),
            Part::Ptx(_) | Part::Cubin(_) => Err(Error::internal("code for a GPU cannot be loaded on the host")),
        });
        let code = LoadedCode::link(&objects.collect::<Result<Vec<_>>>()?, &fibers::symbols())?;
        let mut functions = Vec::with_capacity(image.functions.len());
        for function in &image.functions {
            let address = code.address(&function.name)?;
            // SAFETY: kernels for the host are emitted with this very signature (`Emitter::simt_kernel`), and `_code`
            // keeps them alive.
            let entry = unsafe { std::mem::transmute::<*const std::ffi::c_void, Entry>(address) };
            functions.push(Loaded {
                entry,
                threads: function.threads,
                shared_bytes: function.shared_bytes,
                together: function.together,
                parameters: function.parameters,
            });
        }
        Ok(HostCode { functions, stacks: Mutex::default(), _code: code })
    }

    /// Runs all blocks of a kernel. The words are what its launch was lowered with: addresses of live memory of the
    /// right sizes.
    pub fn launch(&self, function: usize, blocks: u32, words: &[u64]) -> Result<()> {
        let function = *self.functions.get(function).ok_or_else(|| Error::internal("a function that is not there"))?;
        if words.len() != function.parameters {
            return Err(Error::internal(format!("{} words for a kernel of {}", words.len(), function.parameters)));
        }
        let mut shared = vec![0u128; (function.shared_bytes as usize).div_ceil(16)];
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
                fibers::run_block(&function, words, &mut stacks, thread)?;
            } else {
                (0..function.threads).map(thread).for_each(|mut thread| {
                    // SAFETY: the code was generated for launches like this one: it reads and writes the arrays whose
                    // addresses the words are, which the launcher holds, and its shared memory.
                    unsafe { (function.entry)(words.as_ptr(), &raw mut thread) }
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
