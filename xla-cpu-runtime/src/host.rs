//! Calls from generated code to the host: custom calls, operations for the evaluator, and thunks for profiles.
#![expect(unsafe_code, reason = "generated code hands the context back as a pointer")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use xla_hlo::{Error, Module, Result, ResultExt};
use xla_service::thunks::{ExecutionBuffers, Thunk, ThunkId, ThunkKind, run_custom_call, run_fallback};
use xla_service::{ExecutionContext, panic_message};

use crate::profile::{OpenThunks, ThunkTable};

/// Custom call or instruction that the host evaluates: the thunk that describes its operands and results.
pub type HostCall = Thunk;

/// State of one execution, which generated code passes to [`HOST_CALL`](crate::HOST_CALL).
pub struct RunContext<'a> {
    /// Module that runs.
    pub module: &'a Module,
    /// Calls to the host, indexed by their numbers in generated code.
    pub calls: &'a [HostCall],
    /// Device, stream and token of the execution.
    pub context: &'a ExecutionContext<'a>,
    /// Memory of each allocation.
    pub buffers: &'a mut ExecutionBuffers,
    /// First error; generated code stops if there is one.
    pub error: Option<Error>,
    /// Descriptions of thunks, if a profile is collected.
    pub thunks: Option<&'a ThunkTable>,
    /// Thunks that have begun and not ended.
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

    /// Returns the error of a call that panicked.
    fn panicked(&self, number: usize, message: &str) -> Error {
        let error = Error::internal(format!("a call of the host panicked: {message}"));
        match self.calls.get(number) {
            Some(call) => error.context(call.place()),
            None => error,
        }
    }
}

/// Runs call `number`; returns 0 on success.
pub(super) unsafe extern "C" fn xla_cpu_host_call(context: *mut RunContext<'_>, number: i64) -> i32 {
    // SAFETY: generated code passes the context that it was started with, which outlives the run; no other code
    // accesses it during the call.
    let context = unsafe { &mut *context };
    // A panic must not unwind through generated code.
    let outcome = catch_unwind(AssertUnwindSafe(|| context.run(number as usize)));
    let result = outcome.unwrap_or_else(|panic| Err(context.panicked(number as usize, panic_message(&*panic))));
    match result {
        Ok(()) => 0,
        Err(error) => {
            context.error.get_or_insert(error);
            1
        }
    }
}

/// Reports the start of thunk `id`.
pub(super) unsafe extern "C" fn xla_cpu_begin_thunk(context: *mut RunContext<'_>, id: i64) {
    // SAFETY: generated code passes the context that it was started with, which outlives the run; no other code
    // accesses it during the call.
    let context = unsafe { &mut *context };
    let begin = || {
        if let Some(table) = context.thunks {
            context.open.begin(ThunkId(id as u32), table);
        }
    };
    // A panic of a subscriber must not unwind through generated code.
    let _ = catch_unwind(AssertUnwindSafe(begin));
}

/// Reports the end of the thunk that began last.
pub(super) unsafe extern "C" fn xla_cpu_end_thunk(context: *mut RunContext<'_>, _: i64) {
    // SAFETY: as above.
    let context = unsafe { &mut *context };
    let _ = catch_unwind(AssertUnwindSafe(|| context.open.end()));
}
