//! Loading of compiled programs, without passes and without LLVM.

use std::sync::Arc;

use xla_hlo::Result;
use xla_passes::buffers::BufferOptions;
use xla_service::host::StreamTransfer;
use xla_service::thunks::{Lowering, ThunkProgram};
use xla_service::{CompileOptions, Executable, OptimizedModule};

use crate::cuda::driver::Driver;
use crate::cuda::launch::GpuCode;
use crate::executable::{Compiled, GpuExecutable};
use crate::gpu_profile::GpuProfile;
use crate::names::NAME;
use crate::program::caches::AllCaches;
use crate::program::costs::{MEMORY_ALIGNMENT, REUSE_AFTER, ThunkCosts, streams};
use crate::program::launcher::DeviceCode;
use crate::program::recorded_lowering::ReplayLowering;
use crate::program::serialized::{self, DeviceProgram};

/// Loads an executable for the GPUs of this machine. [`InvalidArgument`](xla_hlo::Error::InvalidArgument) if it cannot
/// run on them.
pub(crate) fn load_for_gpu(bytes: &[u8], options: &CompileOptions, caches: &AllCaches) -> Result<Arc<dyn Executable>> {
    load(NAME, bytes, options, |device| {
        device.compiled_for.on_gpu(Driver::get()?.device(0)?.capability)?;
        Ok(Box::new(GpuCode::new(device.clone(), caches, options)))
    })
}

/// Loads an executable of a platform. `code` checks that this machine can run its code, and prepares it.
pub(crate) fn load(
    platform: &'static str,
    bytes: &[u8],
    options: &CompileOptions,
    code: impl FnOnce(&Arc<DeviceProgram>) -> Result<Box<dyn DeviceCode>>,
) -> Result<Arc<dyn Executable>> {
    let (module, device) = DeviceProgram::read(platform, bytes)?;
    let device = Arc::new(device);
    let code = code(&device)?;
    let program = place(&module, &mut ReplayLowering::new(&device.lowerings), &device.gpu, options)?;
    serialized::check_thunks(&program, &device)?;
    let compiled = Compiled { program, device, texts: Vec::new() };
    Ok(Arc::new(GpuExecutable::new(platform, module, compiled, code)))
}

/// Builds thunks, places their arrays and assigns their streams. The result is the same for compiling and for loading a
/// program, since `gpu` is the one that it was compiled for.
pub(crate) fn place(
    module: &OptimizedModule,
    lowering: &mut dyn Lowering,
    gpu: &GpuProfile,
    options: &CompileOptions,
) -> Result<ThunkProgram> {
    let buffers = BufferOptions { alignment: MEMORY_ALIGNMENT, reuse_after: REUSE_AFTER, ..BufferOptions::default() };
    let mut program = ThunkProgram::new(module, lowering, &StreamTransfer, &buffers, options)?;
    let costs = ThunkCosts::new(module, gpu);
    program.assign_streams(&streams(gpu), &|thunk| costs.of(thunk))?;
    Ok(program)
}
