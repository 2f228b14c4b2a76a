//! Launches of command sequences on a GPU: commands are sent one by one, or as graphs if they are repeated.

mod context;
mod graph_order;
mod loaded;
mod measure;
mod resolve;
mod run;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::{Error, Module, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{ExecutionBuffers, Launch, Selector, Thunk};
use xla_service::{CompileOptions, ExecutionContext, LogicalDevice, OptLevel, Stream};

use super::collective;
use super::context::Context;
use super::graph::recording::Recording;
use super::linker::Linker;
use super::module::CudaModule;
use super::stream::CudaStream;
use crate::program::caches::{AllCaches, Caches};
use crate::program::commands::CommandSequence;
use crate::program::image::ModuleImage;
use crate::program::launcher::{DeviceCode, GraphCode};
use crate::program::serialized::DeviceProgram;
use crate::ptx::assembler::Assemble;
use context::LaunchContext;
use loaded::LoadedProgram;
use run::{GraphRun, OwnMemory};

/// Code of a program for GPUs, loaded on each device when it first runs there.
#[derive(Debug)]
pub(crate) struct GpuCode {
    program: Arc<DeviceProgram>,
    caches: Arc<Caches>,
    makes_graphs: bool,
    loaded: Mutex<HashMap<usize, Arc<LoadedProgram>>>,
}

impl DeviceCode for GpuCode {
    fn run(&self, commands: &CommandSequence, launch: &mut Launch<'_>) -> Result<()> {
        let stream: &CudaStream = launch.context.stream.downcast()?;
        let loaded = self.on(stream)?;
        let mut resolved = Vec::new();
        // Scratch memory is freed in stream order, after the commands.
        let scratch = OwnMemory::new(&commands.scratch, stream)?;
        let place = (stream, launch.context);
        let autotune = &self.caches.autotune;
        LaunchContext::new(&loaded, autotune, commands, launch.thunk, launch.buffers, place, &scratch.addresses)
            .resolve(&commands.commands, &mut resolved)?;
        resolved.iter().try_for_each(|command| command.send(&loaded, stream))
    }

    fn collective(&self, module: &Module, launch: &mut Launch<'_>) -> Result<bool> {
        collective::execute(module, launch)
    }

    fn before_host_wait(&self, context: &ExecutionContext<'_>, device: &LogicalDevice) -> Result<()> {
        collective::wait(context, device)
    }

    fn finish(&self, context: &ExecutionContext<'_>, device: &LogicalDevice, error: Option<&Error>) -> Result<()> {
        collective::finish(context, device, error)
    }

    fn graphs(&self) -> Option<&dyn GraphCode> {
        self.makes_graphs.then_some(self as &dyn GraphCode)
    }
}

impl GpuCode {
    /// Creates the code without loading it. Without graphs or optimisation, all commands are sent one by one.
    pub fn new(program: Arc<DeviceProgram>, caches: &AllCaches, options: &CompileOptions) -> GpuCode {
        let makes_graphs = options.graphs && options.opt_level > OptLevel::O0;
        GpuCode { program, caches: caches.of(options), makes_graphs, loaded: Mutex::default() }
    }

    /// Returns the code on the stream's device, which the first call loads.
    fn on(&self, stream: &CudaStream) -> Result<Arc<LoadedProgram>> {
        let context = stream.queue().context();
        // A failed load leaves the table unchanged.
        let mut table = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = match table.entry(context.ordinal()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let (module, libraries) = (self.load(context)?, stream.resources().libraries.clone());
                entry.insert(Arc::new(LoadedProgram::new(module, libraries)))
            }
        };
        loaded.module.used_by(stream.queue());
        Ok(loaded.clone())
    }

    /// Loads the code. If the driver refuses a cubin of the program, for instance one of a newer toolkit, the PTX
    /// stored with it is assembled instead.
    fn load(&self, context: &Arc<Context>) -> Result<CudaModule> {
        let image = self.program.image_for(context.info().capability)?;
        let loaded = self.load_image(context, &image);
        match loaded {
            Err(error) if image.has_machine_code() => {
                tracing::warn!(%error, "the program's machine code cannot be loaded; its PTX is assembled instead");
                let assembled = self.load_image(context, &self.program.image);
                assembled.map_err(|ptx| error.note(format!("The PTX stored with it cannot be loaded either: {ptx}")))
            }
            loaded => loaded,
        }
    }

    /// Loads an image, with cached cubins instead of its PTX if there are any.
    fn load_image(&self, context: &Arc<Context>, image: &ModuleImage) -> Result<CudaModule> {
        let capability = context.info().capability;
        let linker = Linker::new(context);
        let linker = linker.as_ref().map(|linker| linker as &dyn Assemble);
        let architecture = self.program.architecture_on(capability);
        if let Some(machine_code) = self.caches.machine_code.machine_code(image, &architecture, linker) {
            match CudaModule::load(context, &machine_code) {
                Ok(module) => return Ok(module),
                Err(error) => tracing::warn!(%error, "cached machine code cannot be loaded; its PTX is assembled"),
            }
        }
        CudaModule::load(context, image)
    }
}

/// Sends runs of thunks as graphs. Loops and conditionals that the device decides are graphs, too: their thunks are
/// sent to capturing streams.
impl GraphCode for GpuCode {
    fn run_thunks<'a>(
        &self,
        thunks: &[Thunk],
        lowered: &dyn Fn(u32) -> Result<&'a CommandSequence>,
        context: &ExecutionContext<'_>,
        buffers: &mut ExecutionBuffers,
    ) -> Result<bool> {
        let stream: &CudaStream = context.stream.downcast()?;
        let Some(first) = thunks.first() else { return Ok(false) };
        let loaded = self.on(stream)?;
        let kept = loaded.kept(first.id);
        let (loaded, autotune) = (&*loaded, &self.caches.autotune);
        GraphRun { loaded, autotune, thunks, lowered, context, buffers, stream }.send(&kept)?;
        Ok(true)
    }

    /// Returns a stream that captures work for the context's stream.
    fn capture(&self, context: &ExecutionContext<'_>) -> Result<Box<dyn Stream>> {
        Ok(Box::new(context.stream.downcast::<CudaStream>()?.capture()))
    }

    /// Sends a loop to the launch's stream.
    fn run_while(
        &self,
        launch: &mut Launch<'_>,
        condition: &dyn Stream,
        predicate: Slice,
        body: &dyn Stream,
    ) -> Result<()> {
        let (condition, body): (&CudaStream, &CudaStream) = (condition.downcast()?, body.downcast()?);
        let (condition, body) = (condition.end_capture(), body.end_capture());
        self.run_control(launch, predicate, |recording, predicate, after| {
            recording.repeat(condition, predicate, body, after)
        })
    }

    /// Sends a conditional to the launch's stream.
    fn run_conditional(
        &self,
        launch: &mut Launch<'_>,
        selector: Selector,
        slice: Slice,
        branches: &[Box<dyn Stream>],
    ) -> Result<()> {
        let captured = branches.iter().map(|branch| Ok(branch.downcast::<CudaStream>()?.end_capture()));
        let branches = captured.collect::<Result<Vec<_>>>()?;
        self.run_control(launch, slice, |recording, address, after| {
            recording.choose((selector, address), branches, after)
        })
    }
}

impl GpuCode {
    /// Sends control flow that reads the bytes of a slice: `add` adds it to a recording, given the address of the
    /// slice.
    fn run_control(
        &self,
        launch: &Launch<'_>,
        slice: Slice,
        add: impl FnOnce(&mut Recording, u64, &[usize]) -> usize,
    ) -> Result<()> {
        let stream: &CudaStream = launch.context.stream.downcast()?;
        let address = stream.address_of(launch.buffers.memory(slice.allocation)?, slice.offset, slice.size)?;
        let add = |recording: &mut Recording, after: &[usize]| add(recording, address, after);
        if stream.is_capturing() {
            stream.record(add);
            return Ok(());
        }
        let mut recording = Recording::default();
        add(&mut recording, &[]);
        let loaded = self.on(stream)?;
        loaded.kept(launch.thunk.id).slot.run(recording, None, &loaded.libraries, stream)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata};

    use super::*;
    use crate::program::compiled_for::CompiledFor;
    use crate::program::image::{CodeObject, KernelFunction};

    /// Counts warnings.
    #[derive(Clone, Default)]
    struct Warnings(Arc<AtomicUsize>);

    impl tracing::Subscriber for Warnings {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() == Level::WARN
        }

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    fn code(architecture: &str, cubin: &[u8], ptx: &str) -> GpuCode {
        let function = KernelFunction {
            name: "scale".to_string(),
            object: 0,
            threads: 128,
            shared_bytes: 0,
            together: false,
            parameters: 2,
            maps: Vec::new(),
        };
        let program = DeviceProgram {
            gpu: crate::gpu_profile::GpuProfile::usual(),
            compiled_for: CompiledFor::Gpu(architecture.to_string()),
            image: ModuleImage { functions: vec![function], objects: vec![CodeObject::Ptx(ptx.to_string())] },
            cubins: vec![Some(cubin.to_vec())],
            command_sequences: Vec::new(),
            lowerings: Vec::new(),
            thunk_hash: [0; 32],
        };
        GpuCode::new(Arc::new(program), &AllCaches::default(), &CompileOptions::default())
    }

    #[test]
    fn machine_code_that_is_refused_is_assembled_from_its_ptx_with_a_warning() {
        let Ok(context) = Context::new(0) else { return };
        let architecture = format!("sm_{}0", context.info().capability.0);
        let load = |cubin: &[u8], ptx: &str| {
            let warnings = Warnings::default();
            let code = code(&architecture, cubin, ptx);
            let loaded = tracing::subscriber::with_default(warnings.clone(), || code.load(&context));
            (loaded, warnings.0.load(Ordering::Relaxed))
        };
        let ptx = include_str!("../../ptx/scale.ptx");
        let mut elf = b"\x7fELF of no device".to_vec();
        elf.resize(4096, 0);
        for cubin in [elf.as_slice(), b"garbled"] {
            let (loaded, warnings) = load(cubin, ptx);
            assert!(loaded.is_ok(), "{:?}", loaded.err());
            assert_eq!(warnings, 1);
        }
        let (loaded, _) = load(b"garbled", "no PTX either");
        let error = loaded.unwrap_err();
        assert!(error.message().contains("corrupt") && error.message().contains("PTX stored with it"), "{error}");
    }
}
