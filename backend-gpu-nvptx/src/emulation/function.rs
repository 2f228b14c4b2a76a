//! Kernel as a host function: `void kernel(ptr arguments, ptr thread)`.

use xla_llvm::simt::HostThread;

/// Signature of a kernel, `void kernel(ptr arguments, ptr thread)`; arguments are 64-bit words.
pub(super) type KernelEntry = unsafe extern "C" fn(*const u64, *mut HostThread);

/// Kernel that runs on the host.
#[derive(Clone, Copy)]
pub(super) struct EmulatedFunction {
    pub entry: KernelEntry,
    pub threads: u32,
    pub shared_bytes: u32,
    pub together: bool,
    pub parameters: usize,
}
