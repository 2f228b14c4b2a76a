//! Launches of command sequences on a GPU: one by one, or as graphs where they are repeated.

mod context;
mod loaded;
mod resolve;
mod trial;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{ExecutionBuffers, KernelRef, Launch, LibraryRef, ThunkKind, ThunkSequence};
use xla_service::{CompileOptions, ExecutionContext, OptLevel, Stream};

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
use context::{LaunchContext, ResolvedCommand, copy};
use loaded::LoadedProgram;

/// Thunks from which on a sequence is kept as a graph.
const WORTH_A_GRAPH: usize = 4;
/// The code of a program for GPUs, loaded into each when it first runs there.
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
        // Its memory is freed in stream order, after the commands.
        let launch_context = LaunchContext::new(
            &loaded,
            &self.caches.autotune,
            commands,
            launch.thunk,
            launch.buffers,
            (stream, launch.context.random),
        )?;
        launch_context.resolve(&commands.commands, &mut resolved)?;
        resolved.iter().try_for_each(|command| command.send(&loaded, stream))
    }

    fn graphs(&self) -> Option<&dyn GraphCode> {
        self.makes_graphs.then_some(self as &dyn GraphCode)
    }
}

impl GpuCode {
    /// Nothing is loaded yet. Without optimisation all commands are sent one by one.
    pub fn new(program: Arc<DeviceProgram>, caches: &AllCaches, options: &CompileOptions) -> GpuCode {
        let makes_graphs = options.opt_level > OptLevel::O0;
        GpuCode { program, caches: caches.of(options), makes_graphs, loaded: Mutex::default() }
    }

    /// The code on the stream's device.
    fn on(&self, stream: &CudaStream) -> Result<Arc<LoadedProgram>> {
        let context = stream.queue().context();
        // A failed load leaves the table as it was.
        let mut table = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = table.get(&context.ordinal()) {
            return Ok(loaded.clone());
        }
        let (module, libraries) = (self.load(context)?, stream.resources().libraries.clone());
        let loaded = Arc::new(LoadedProgram::new(module, libraries));
        table.insert(context.ordinal(), loaded.clone());
        Ok(loaded)
    }

    /// Loads the code. Machine code of the program that the driver does not take, of a toolkit that came after it for
    /// instance, is assembled again from the PTX beside it.
    fn load(&self, context: &Arc<Context>) -> Result<CudaModule> {
        let image = self.program.image_for(context.info().capability)?;
        let loaded = self.load_image(context, &image);
        match loaded {
            Err(error) if image.has_machine_code() => {
                tracing::warn!(%error, "the program's machine code cannot be loaded; its PTX is assembled");
                let assembled = self.load_image(context, &self.program.image);
                assembled.map_err(|ptx| error.note(format!("The PTX beside it cannot be loaded either: {ptx}")))
            }
            loaded => loaded,
        }
    }

    /// Loads an image; its PTX as machine code, if that is kept.
    fn load_image(&self, context: &Arc<Context>, image: &ModuleImage) -> Result<CudaModule> {
        let capability = context.info().capability;
        let linker = Linker::new(context);
        let linker = linker.as_ref().map(|linker| linker as &dyn Assemble);
        let architecture = self.program.architecture_on(capability);
        if let Some(machine_code) = self.caches.machine_code.machine_code(image, &architecture, linker) {
            match CudaModule::load(context, &machine_code) {
                Ok(module) => return Ok(module),
                Err(error) => tracing::warn!(%error, "kept machine code cannot be loaded; the driver assembles again"),
            }
        }
        CudaModule::load(context, image)
    }
}

/// Loops whose predicates the device itself reads: their thunks are sent to capturing streams, which become graphs.
impl GraphCode for GpuCode {
    fn run_sequence<'a>(
        &self,
        sequence: &ThunkSequence,
        lowered: &dyn Fn(u32) -> Result<&'a CommandSequence>,
        context: &ExecutionContext<'_>,
        buffers: &mut ExecutionBuffers,
    ) -> Result<bool> {
        let Some(first) = sequence.thunks.first().filter(|_| sequence.thunks.len() >= WORTH_A_GRAPH) else {
            return Ok(false);
        };
        let stream: &CudaStream = context.stream.downcast()?;
        if stream.is_capturing() {
            return Ok(false);
        }
        let loaded = self.on(stream)?;
        let kept = loaded.kept(first.id);
        let (mut resolved, mut owners) = (Vec::new(), Vec::new());
        let mut recording = Recording::default();
        for (number, thunk) in sequence.thunks.iter().enumerate() {
            match &thunk.kind {
                ThunkKind::Kernel(KernelRef { index, .. }) | ThunkKind::LibraryCall(LibraryRef { index, .. }) => {
                    let commands = lowered(*index)?;
                    let launch_context = LaunchContext::new(
                        &loaded,
                        &self.caches.autotune,
                        commands,
                        thunk,
                        buffers,
                        (stream, context.random),
                    )?;
                    launch_context.resolve(&commands.commands, &mut resolved)?;
                    launch_context.scratch.into_iter().for_each(|memory| recording.keep(memory));
                }
                ThunkKind::Copy => resolved.push(copy(thunk, [0, 1], buffers, stream)?),
                _ => return Err(Error::internal(format!("{} is not a launch", thunk.name))),
            }
            owners.resize(resolved.len(), number);
        }
        let order = kept.order(sequence, &owners);
        for (command, after) in resolved.into_iter().zip(order.iter()) {
            match command {
                ResolvedCommand::Launch { function, blocks, arguments } => {
                    recording.kernel(loaded.module.call(function, blocks, &arguments)?, after);
                }
                ResolvedCommand::Copy { from, to, bytes } => _ = recording.copy(from, to, bytes, after),
                ResolvedCommand::Library { call, addresses } => {
                    let bytes = loaded.libraries.workspace(&call, &addresses)?;
                    let memory = stream.scratch(bytes)?;
                    recording.library(&call, &addresses, stream.address_in(&memory, 0, bytes)?, after);
                    recording.keep(memory);
                }
            }
        }
        kept.slot.run(recording, &loaded.libraries, stream)?;
        Ok(true)
    }

    /// A stream that captures the work of the context's.
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
        let stream: &CudaStream = launch.context.stream.downcast()?;
        let loaded = self.on(stream)?;
        let memory = launch.buffers.memory(predicate.allocation)?;
        let predicate = stream.address_of(memory, predicate.offset, predicate.size)?;
        let (condition, body) = (condition.downcast()?, body.downcast()?);
        loaded.kept(launch.thunk.id).slot.run_loop(condition, predicate, body, &loaded.libraries, stream)
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
        assert!(error.message().contains("garbled") && error.message().contains("PTX beside it"), "{error}");
    }
}
