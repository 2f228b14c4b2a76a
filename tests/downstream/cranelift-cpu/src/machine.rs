//! Machine code in this process: kernels and library functions on the host's memory, and the evaluator's functions.
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

/// Elements that are worth a thread.
const THREAD_ELEMENTS: usize = 1 << 14;

/// Bytes between the operands that kernels hand to [`apply`]: the widest element's.
pub(crate) const SLOT: usize = 16;

/// Values that generated code has the addresses of.
pub(crate) type Kept = Vec<Arc<dyn Any + Send + Sync>>;

/// Number of independent parts of a kernel, and elements that each computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub items: usize,
    pub elements: usize,
}

/// An elementwise operation that the evaluator does for a kernel, element by element.
pub(crate) struct Application {
    pub function: ElementFunction,
    pub operands: Vec<ElementType>,
    pub result: ElementType,
}

/// Reads the operands, one in each slot, and writes the result.
pub(crate) extern "C" fn apply(application: *const Application, operands: *const [u8; SLOT], result: *mut [u8; SLOT]) {
    // SAFETY: kernels hand over an application that is kept as long as their code, and room on their stack.
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

/// The kernels of a program.
pub(crate) struct MachineCode {
    kernels: Vec<(KernelFn, Work)>,
    /// Owns the code; taken out when it is freed.
    module: Mutex<Option<JITModule>>,
    _kept: Kept,
}

impl MachineCode {
    /// The kernels, which [`KernelBuilder`](crate::builder::KernelBuilder) defined, of a module whose definitions are
    /// final.
    pub fn new(module: JITModule, kernels: Vec<(FuncId, Work)>, kept: Kept) -> MachineCode {
        let link = |(id, work)| {
            let address = module.get_finalized_function(id);
            // SAFETY: kernels are defined with this signature, and `module` keeps them.
            (unsafe { std::mem::transmute::<*const u8, KernelFn>(address) }, work)
        };
        let kernels = kernels.into_iter().map(link).collect();
        MachineCode { kernels, module: Mutex::new(Some(module)), _kept: kept }
    }

    fn kernel(&self, index: u32) -> Result<(KernelFn, Work)> {
        let kernel = self.kernels.get(index as usize).copied();
        kernel.ok_or_else(|| Error::internal("a kernel that was never lowered"))
    }

    /// Runs the kernel of that number, which was made for the launch's thunk.
    pub fn run(&self, index: u32, threads: usize, launch: &mut Launch<'_>) -> Result<()> {
        let (function, Work { items, elements }) = self.kernel(index)?;
        let pointers = &Pointers::of(launch)?;
        let worth = items.saturating_mul(elements) / THREAD_ELEMENTS;
        let chunks = items.min(worth.clamp(1, 4 * threads.max(1)));
        parallel_for(threads, chunks, &|chunk| {
            let Pointers(pointers) = pointers;
            let [first, last] = [chunk, chunk + 1].map(|chunk| (items * chunk / chunks) as i64);
            // SAFETY: the kernel was made for these arrays, which are live and of the sizes that the lowering was told;
            // nobody else uses the results' memory, and each thread has work items of its own.
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
        // that the lowering was told, its kernels were made for it, and nobody else uses the results' memory.
        unsafe {
            function(pointers.as_ptr(), kernels.as_ptr(), numbers.as_ptr(), numbers.len() as i64, threads as i64);
        }
        Ok(())
    }
}

impl Drop for MachineCode {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // SAFETY: kernels are called by methods of this alone, and none runs when it is dropped.
        module.into_iter().for_each(|module| unsafe { module.free_memory() });
    }
}

/// Addresses that threads share.
struct Pointers(Vec<*mut u8>);

// SAFETY: they are handed to kernels alone, whose work items write to disjoint places.
unsafe impl Sync for Pointers {}

impl Pointers {
    /// The first bytes of operands and results.
    fn of(launch: &mut Launch<'_>) -> Result<Pointers> {
        let thunk = launch.thunk;
        // Asked for writing, so that nobody else reads them.
        thunk.results.iter().try_for_each(|array| launch.buffers.memory_mut(array.slice.allocation).map(drop))?;
        let address = |array: &ArraySlice| {
            let memory = launch.buffers.memory(array.slice.allocation)?;
            Ok(memory.downcast::<HostMemory>()?.as_ptr().wrapping_add(array.slice.offset))
        };
        Ok(Pointers(thunk.operands.iter().chain(&thunk.results).map(address).collect::<Result<_>>()?))
    }
}
