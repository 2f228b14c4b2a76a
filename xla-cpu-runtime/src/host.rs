//! Calls of generated code back to the host: custom calls, operations that it evaluates, thunks that profiles see.
#![expect(unsafe_code, reason = "generated code hands the context back as a pointer")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use xla_hlo::{Error, Module, Result, ResultExt};
use xla_service::ExecutionContext;
use xla_service::thunks::{ExecutionBuffers, Thunk, ThunkId, ThunkKind, run_custom_call, run_fallback};

use crate::profile::{OpenThunks, ThunkTable};

/// A custom call or an instruction that the host evaluates: the thunk that says where its operands and results are.
pub type HostCall = Thunk;

/// State of one execution that generated code hands back to [`HOST_CALL`](crate::HOST_CALL).
pub struct RunContext<'a> {
    /// The module that runs.
    pub module: &'a Module,
    /// Calls to the host, by the numbers that generated code has for them.
    pub calls: &'a [HostCall],
    /// Device, stream and token of the execution.
    pub context: &'a ExecutionContext<'a>,
    /// Memory by allocation.
    pub buffers: &'a mut ExecutionBuffers,
    /// The first error; generated code stops when there is one.
    pub error: Option<Error>,
    /// Descriptions of thunks, where profiles are taken.
    pub thunks: Option<&'a ThunkTable>,
    /// Those that have begun.
    pub open: OpenThunks,
}

impl RunContext<'_> {
    fn run(&mut self, number: usize) -> Result<()> {
        let call =
            self.calls.get(number).ok_or_else(|| Error::internal(format!("host call {number} does not exist")))?;
        let result = self.context.cancel.check().and_then(|()| match call.kind {
            ThunkKind::CustomCall => run_custom_call(self.module, call, self.context, self.buffers),
            _ => run_fallback(self.module, call, self.context, self.buffers),
        });
        result.context(|| call.place())
    }
}

/// Runs call `number`; 0 when it went well.
pub(super) unsafe extern "C" fn xla_cpu_host_call(context: *mut RunContext<'_>, number: i64) -> i32 {
    // SAFETY: generated code passes on the context that it was started with, which outlives the run and which nobody
    // else uses meanwhile.
    let context = unsafe { &mut *context };
    // A panic must not unwind through generated code.
    let outcome = catch_unwind(AssertUnwindSafe(|| context.run(number as usize)));
    let result =
        outcome.unwrap_or_else(|_| Err(Error::internal("the evaluation of an operation on the host panicked")));
    match result {
        Ok(()) => 0,
        Err(error) => {
            context.error.get_or_insert(error);
            1
        }
    }
}

/// Thunk `id` begins.
pub(super) unsafe extern "C" fn xla_cpu_begin_thunk(context: *mut RunContext<'_>, id: i64) {
    // SAFETY: generated code passes on the context that it was started with, which outlives the run and which nobody
    // else uses meanwhile.
    let context = unsafe { &mut *context };
    let begin = || {
        if let Some(table) = context.thunks {
            context.open.begin(ThunkId(id as u32), table);
        }
    };
    // A panic of a subscriber must not unwind through generated code.
    let _ = catch_unwind(AssertUnwindSafe(begin));
}

/// The thunk that began last ends.
pub(super) unsafe extern "C" fn xla_cpu_end_thunk(context: *mut RunContext<'_>, _: i64) {
    // SAFETY: as above.
    let context = unsafe { &mut *context };
    let _ = catch_unwind(AssertUnwindSafe(|| context.open.end()));
}
