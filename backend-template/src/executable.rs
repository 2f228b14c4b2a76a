//! Launcher: launches kernels and runs loops on the device.

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{DeviceLoops, KernelRef, Launch, Launcher, LibraryRef};
use xla_service::{ExecutionContext, Stream};

use crate::device::{Command, Kernel, Predicate, Region};
use crate::executor::{TemplateStream, region};

/// Launcher of the lowered kernels of one program.
#[derive(Debug)]
pub(crate) struct TemplateLauncher {
    kernels: Vec<Arc<Kernel>>,
}

impl TemplateLauncher {
    /// Creates a launcher for kernels indexed by [`KernelRef::index`].
    pub fn new(kernels: Vec<Kernel>) -> TemplateLauncher {
        TemplateLauncher { kernels: kernels.into_iter().map(Arc::new).collect() }
    }
}

impl Launcher for TemplateLauncher {
    // VENDOR(launch): pass the kernel and the addresses of operands and results to the driver.
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()> {
        let kernel = self.kernels.get(kernel.index as usize);
        let kernel = kernel.ok_or_else(|| Error::internal("the launched kernel was never lowered"))?;
        let arrays = launch.thunk.operands.iter().chain(&launch.thunk.results);
        let bindings = arrays.map(|array| bind(launch, array.slice)).collect::<Result<_>>()?;
        stream(launch)?.send(|label| Command::launch(label, kernel, bindings))
    }

    // VENDOR(launch): call the library, if `lowering` returns library calls.
    fn library_call(&self, call: &LibraryRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("library call {} was never lowered", call.name)))
    }

    // VENDOR(loops): return `None` unless the device can test a predicate and repeat recorded work.
    // The host then runs loops. If a running loop cannot be stopped, return `None` where `context.cancel.can_cancel()`.
    fn device_loops(&self, _: &ExecutionContext<'_>) -> Option<&dyn DeviceLoops> {
        Some(self)
    }
}

// VENDOR(loops): delete this with `device_loops`, or build the driver's graph of recorded work.
impl DeviceLoops for TemplateLauncher {
    fn record(&self, _: &ExecutionContext<'_>) -> Result<Box<dyn Stream>> {
        Ok(Box::new(TemplateStream::recording()))
    }

    fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: Box<dyn Stream>,
        predicate: Slice,
        body: Box<dyn Stream>,
    ) -> Result<()> {
        let condition = condition.downcast::<TemplateStream>()?.recorded();
        let body = body.downcast::<TemplateStream>()?.recorded();
        let cancelled = launch.context.cancel.flag().clone();
        let predicate = Predicate { place: bind(launch, predicate)?, cancelled };
        stream(launch)?.send(|label| Command::repeat(label, condition, predicate, body))
    }
}

/// Returns the device memory of a slice.
fn bind(launch: &Launch<'_>, slice: Slice) -> Result<Region> {
    region(launch.buffers.memory(slice.allocation)?, slice.offset, slice.size)
}

/// Returns the stream of a launch.
fn stream<'a>(launch: &Launch<'a>) -> Result<&'a TemplateStream> {
    launch.context.stream.downcast()
}
