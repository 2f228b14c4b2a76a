//! Machine code in this process: calls of kernels and library functions with the host's memory, and of evaluator
//! functions.
#![expect(unsafe_code, reason = "machine code and library functions take raw pointers")]

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_jit::JITModule;
use cranelift_module::FuncId;
use xla::hlo::ops::ElementFunction;
use xla::hlo::{ElementType, Error, Result, Scalar};
use xla::service::host::HostMemory;
use xla::service::thunks::{ArraySlice, Launch};
use xla_cpu_runtime::{KernelFn, LibraryCall, parallel_for};

/// Minimum number of elements for a thread.
const THREAD_ELEMENTS: usize = 1 << 14;

/// Distance in bytes of the operands that kernels pass to [`apply`]: the size of the widest element.
pub(crate) const SLOT: usize = 16;

/// Values whose addresses are in generated code.
pub(crate) type Kept = Vec<Arc<dyn Any + Send + Sync>>;

/// Number of independent work items of a kernel, and of the elements that each computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub items: usize,
    pub elements: usize,
}

/// Elementwise operation that the evaluator computes for a kernel, element by element.
pub(crate) struct Application {
    pub function: ElementFunction,
    pub operands: Vec<ElementType>,
    pub result: ElementType,
}

/// Reads the operands, one in each slot, and writes the result.
pub(crate) extern "C" fn apply(application: *const Application, operands: *const [u8; SLOT], result: *mut [u8; SLOT]) {
    // SAFETY: kernels pass an application that lives as long as their code, and a slot on their stack.
    let (application, result) = unsafe { (&*application, &mut *result) };
    let count = application.operands.len();
    // SAFETY: as above; there is a slot for each operand.
    let operands = unsafe { std::slice::from_raw_parts(operands, count) };
    let mut values = [Scalar::Pred(false); 3];
    for ((value, &ty), bytes) in values.iter_mut().zip(&application.operands).zip(operands) {
        *value = Scalar::read(ty, bytes);
    }
    application.function.compute(&values[..count]).write(application.result, result);
}

/// Kernels of a program.
pub(crate) struct MachineCode {
    kernels: Vec<(KernelFn, Work)>,
    /// Owner of the code; taken when the code is freed.
    module: Mutex<Option<JITModule>>,
    _kept: Kept,
}

impl MachineCode {
    /// Creates the code from a module with final definitions, and kernels that
    /// [`KernelBuilder`](crate::builder::KernelBuilder) defined.
    pub fn new(module: JITModule, kernels: Vec<(FuncId, Work)>, kept: Kept) -> MachineCode {
        let link = |(id, work)| {
            let address = module.get_finalized_function(id);
            // SAFETY: kernels are defined with this signature, and `module` keeps them alive.
            (unsafe { std::mem::transmute::<*const u8, KernelFn>(address) }, work)
        };
        let kernels = kernels.into_iter().map(link).collect();
        MachineCode { kernels, module: Mutex::new(Some(module)), _kept: kept }
    }

    fn kernel(&self, index: u32) -> Result<(KernelFn, Work)> {
        let kernel = self.kernels.get(index as usize).copied();
        kernel.ok_or_else(|| Error::internal("the launched kernel was never lowered"))
    }

    /// Runs the kernel with an index, which was defined for the launch's thunk.
    pub fn run(&self, index: u32, threads: usize, launch: &mut Launch<'_>) -> Result<()> {
        let (function, Work { items, elements }) = self.kernel(index)?;
        let pointers = &Pointers::of(launch)?;
        let worth = items.saturating_mul(elements) / THREAD_ELEMENTS;
        let chunks = items.min(worth.clamp(1, 4 * threads.max(1)));
        parallel_for(threads, chunks, &|chunk| {
            let Pointers(pointers) = pointers;
            let [first, last] = [chunk, chunk + 1].map(|chunk| (items * chunk / chunks) as i64);
            // SAFETY: the kernel was defined for these arrays, which are live and of the sizes that the lowering used;
            // nothing else accesses the results' memory, and the threads' work items are disjoint.
            unsafe { function(pointers.as_ptr(), first, last) };
        });
        Ok(())
    }

    /// Calls a library function with the arrays of the launch's thunk, which it was described for.
    pub fn call(&self, call: &LibraryCall, threads: usize, launch: &mut Launch<'_>) -> Result<()> {
        let kernels = call.kernels.iter().map(|&kernel| Ok(self.kernel(kernel)?.0));
        let kernels: Vec<KernelFn> = kernels.collect::<Result<_>>()?;
        let Pointers(pointers) = Pointers::of(launch)?;
        let (function, numbers) = (call.function.address(), &call.descriptor);
        if call.function.takes_context() {
            return Err(Error::internal(format!("{} takes the context of compiled entries", call.function.symbol())));
        }
        // SAFETY: the call was described for these arrays (`xla_cpu_runtime::calls`), which are live and of the sizes
        // that the lowering used, its kernels were defined for it, and nothing else accesses the results' memory.
        unsafe {
            function(pointers.as_ptr(), kernels.as_ptr(), numbers.as_ptr(), numbers.len() as i64, threads as i64);
        }
        Ok(())
    }
}

impl Drop for MachineCode {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // SAFETY: kernels are called only by methods of this type, and none runs when it is dropped.
        module.into_iter().for_each(|module| unsafe { module.free_memory() });
    }
}

/// Addresses that threads share.
struct Pointers(Vec<*mut u8>);

// SAFETY: the addresses are passed to kernels only, whose work items write to disjoint locations.
unsafe impl Sync for Pointers {}

impl Pointers {
    /// Returns the addresses of operands and results.
    fn of(launch: &mut Launch<'_>) -> Result<Pointers> {
        let thunk = launch.thunk;
        // Results are requested for writing, which ensures that nothing else reads them.
        thunk.results.iter().try_for_each(|array| launch.buffers.memory_mut(array.slice.allocation).map(drop))?;
        let address = |array: &ArraySlice| {
            let memory = launch.buffers.memory(array.slice.allocation)?;
            Ok(memory.downcast::<HostMemory>()?.as_ptr().wrapping_add(array.slice.offset))
        };
        Ok(Pointers(thunk.operands.iter().chain(&thunk.results).map(address).collect::<Result<_>>()?))
    }
}
