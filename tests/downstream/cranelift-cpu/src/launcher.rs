//! Launcher of a program's kernels and library calls.

use xla::hlo::{Error, Literal, Result, Scalar};
use xla::service::thunks::{KernelRef, Launch, Launcher, LibraryRef};
use xla_cpu_runtime::{LibraryCall, LibraryFunction};

use crate::machine::MachineCode;

/// Launcher of the lowered instructions.
pub(crate) struct CraneliftLauncher {
    pub code: MachineCode,
    /// Library calls by [`LibraryRef::index`].
    pub calls: Vec<LibraryCall>,
    pub threads: usize,
}

impl std::fmt::Debug for CraneliftLauncher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CraneliftLauncher").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl Launcher for CraneliftLauncher {
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()> {
        self.code.run(kernel.index, self.threads, launch)
    }

    fn library_call(&self, call: &LibraryRef, launch: &mut Launch<'_>) -> Result<()> {
        let call = self.calls.get(call.index as usize);
        let call = call.ok_or_else(|| Error::internal("a library call that was never lowered"))?;
        match call.function {
            LibraryFunction::RandomState => advance_random_state(call.descriptor.iter().sum(), launch),
            _ => self.code.call(call, self.threads, launch),
        }
    }
}

/// Advances the device's random state; the result is its previous value, u64[2], the low half first.
fn advance_random_state(delta: i64, launch: &mut Launch<'_>) -> Result<()> {
    let before = launch.context.random.advance(delta);
    let [result] = &launch.thunk.results[..] else { return Err(Error::internal("a random state is one array")) };
    let halves = [before as u64, (before >> 64) as u64];
    let value = Literal::from_fn(&result.shape, |i| Scalar::Unsigned(halves[i]))?;
    let memory = launch.buffers.memory_mut(result.slice.allocation)?;
    launch.context.transfer.write(launch.context.stream, &value, &result.shape, memory, result.slice.offset)
}
