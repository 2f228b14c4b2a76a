//! Kernel as a function of the host: `void kernel(ptr arguments, ptr thread)`.

use xla_llvm::simt::HostThread;

/// `void kernel(ptr arguments, ptr thread)`; arguments are 64-bit words.
pub(super) type KernelEntry = unsafe extern "C" fn(*const u64, *mut HostThread);

/// A kernel.
#[derive(Clone, Copy)]
pub(super) struct EmulatedFunction {
    pub entry: KernelEntry,
    pub threads: u32,
    pub shared_bytes: u32,
    pub together: bool,
    pub parameters: usize,
}
