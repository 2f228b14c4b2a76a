//! Executable: machine code, buffer plan, and the operations that the host evaluates.
#![expect(unsafe_code, reason = "generated code is called through a function pointer")]

use std::mem::MaybeUninit;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use xla_cpu_runtime::{Helpers, HostCall, OpenThunks, RunContext, ThunkTable};
use xla_hlo::{Error, Module, Result, ResultExt};
use xla_llvm::jit::LoadedCode;
use xla_service::executable::SerializeExecutable;
use xla_service::host::HostMemory;
use xla_service::thunks::{ExecutionBuffers, ThunkProgram, ThunkSequence};
use xla_service::{
    Argument, CostAnalysis, DeviceMemory, Executable, ExecutionContext, MemoryAnalysis, OptimizedModule, Signature,
    serialized,
};

use crate::lowering::host_calls;
use crate::options::NAME;
use crate::program::codegen::Code;
use crate::program::entry::ENTRY;
use crate::program::machine_code;

/// Size in bytes up to which scratch memory is on the caller's stack; larger scratch memory comes from the device's
/// pool.
const NEAR_SCRATCH: usize = 4096;

/// Scratch memory on the stack.
#[repr(align(64))]
struct NearScratch(MaybeUninit<[u8; NEAR_SCRATCH]>);

/// Type of the entry function: `i32 xla_entry(ptr table, ptr context, ptr cancel, i32 profile)`.
type Entry = unsafe extern "C" fn(*const *mut u8, *mut RunContext<'_>, *const AtomicBool, i32) -> i32;

pub(crate) struct CpuExecutable {
    module: OptimizedModule,
    program: ThunkProgram,
    host_calls: Vec<HostCall>,
    entry: Entry,
    code: Code,
    /// Target, version and options that the code was generated for.
    compiled_for: String,
    /// Descriptions of thunks, created for the first profiled run.
    thunk_table: OnceLock<ThunkTable>,
    /// Helper threads for parallel loops; `None` for the process's own pool.
    helpers: Option<Arc<Helpers>>,
    /// Keeps the code of `entry` loaded.
    _loaded: LoadedCode,
}

impl std::fmt::Debug for CpuExecutable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuExecutable").field("module", &self.module.name()).finish_non_exhaustive()
    }
}

impl CpuExecutable {
    /// Loads the code of a program into this process. `compiled_for` identifies its target.
    pub fn new(
        module: OptimizedModule,
        program: ThunkProgram,
        code: Code,
        compiled_for: String,
        helpers: Option<Arc<Helpers>>,
    ) -> Result<CpuExecutable> {
        let host_calls = host_calls(&program.sequence).cloned().collect();
        let span = tracing::debug_span!("link").entered();
        let loaded = code.machine.link()?;
        let address = loaded.address(ENTRY)?;
        drop(span);
        // SAFETY: `entry::emit` emits the entry with exactly this signature, either in this process or in the one that
        // wrote the serialised program. The caller of `LoadExecutable::load` vouches for the origin of such a program,
        // and `machine_code::read` accepts only code of this build. `_loaded` keeps the code alive.
        let entry = unsafe { std::mem::transmute::<*const std::ffi::c_void, Entry>(address) };
        Ok(CpuExecutable {
            module,
            program,
            host_calls,
            entry,
            code,
            compiled_for,
            thunk_table: OnceLock::new(),
            helpers,
            _loaded: loaded,
        })
    }
}

impl Executable for CpuExecutable {
    fn module(&self) -> &Module {
        &self.module
    }

    fn signature(&self) -> &Signature {
        &self.program.signature
    }

    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        let mut buffers = ExecutionBuffers::new(&self.program.plan, context, arguments)?;
        let pointers = buffers.host_pointers()?;
        let table = || ThunkTable::new(&self.module, &self.program.sequence);
        let thunks = ThunkTable::is_wanted().then(|| self.thunk_table.get_or_init(table));
        let mut run = RunContext {
            module: &self.module,
            calls: &self.host_calls,
            context,
            buffers: &mut buffers,
            error: None,
            thunks,
            open: OpenThunks::default(),
        };
        let host = &raw mut run;
        let mut near = NearScratch(MaybeUninit::uninit());
        let far = match self.code.machine.arguments.scratch_bytes() {
            ..=NEAR_SCRATCH => None,
            bytes => Some(context.executor.allocate(bytes).context(|| "scratch memory of kernels".to_string())?),
        };
        let scratch = match &far {
            Some(memory) => memory.downcast::<HostMemory>()?.as_ptr(),
            None => near.0.as_mut_ptr().cast(),
        };
        let table = self.code.machine.arguments.addresses(&pointers, scratch, host.cast());
        let table =
            table.ok_or_else(|| Error::internal("generated code uses an allocation that is not in the plan"))?;
        let (cancel, profile) = (context.cancel.flag(), i32::from(thunks.is_some()));
        // SAFETY: the code was generated for this plan, or was read from a serialised program whose origin the loader's
        // caller vouches for, with a plan of the same key and a table within its allocations (`machine_code::read`). It
        // reads and writes allocations as the assignment allows, at the addresses in `table`. These are valid until
        // `buffers` is used again, by a host call or below, after the code has returned. The scratch memory belongs to
        // this run alone and is as large as the code requires. The table has the layout that the code was generated
        // with. The flag lives in the context.
        let enter = || unsafe { (self.entry)(table.as_ptr(), host, &raw const **cancel, profile) };
        let status = match &self.helpers {
            Some(helpers) => helpers.scope(enter),
            None => enter(),
        };
        if status != 0 {
            let error = run.error.take();
            let unknown = || Error::internal("generated code failed without an error");
            return Err(error.or_else(|| context.cancel.check().err()).unwrap_or_else(unknown));
        }
        buffers.into_results(&self.program.plan, context)
    }

    fn memory_analysis(&self) -> MemoryAnalysis {
        let planned = self.program.plan.memory_analysis();
        let machine = &self.code.machine;
        let temporary_bytes = planned.temporary_bytes + machine.arguments.scratch_bytes();
        MemoryAnalysis { code_bytes: machine.bytes(), temporary_bytes, ..planned }
    }

    fn cost_analysis(&self) -> CostAnalysis {
        CostAnalysis::of(&self.module)
    }

    fn thunks(&self) -> Option<&ThunkSequence> {
        Some(&self.program.sequence)
    }

    fn serializer(&self) -> Option<&dyn SerializeExecutable> {
        Some(self)
    }

    fn dumps(&self) -> Vec<(String, String)> {
        let mut dumps = self.program.dumps(&self.module);
        dumps.extend(self.code.texts.iter().cloned());
        dumps
    }
}

impl SerializeExecutable for CpuExecutable {
    /// Serialises the optimised module and its machine code. If the code does not match at loading, it is generated
    /// again.
    fn serialize(&self) -> Result<Vec<u8>> {
        let code = machine_code::write(&self.compiled_for, &self.program, &self.code.machine)?;
        serialized::write(NAME, &self.module, &code)
    }
}
