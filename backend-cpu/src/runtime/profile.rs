//! Makes a `tracing` span of each thunk of a profiled program, with what it costs.
#![expect(unsafe_code, reason = "generated code hands the context back as a pointer")]

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing::span::EnteredSpan;
use xla_hlo::Module;
use xla_passes::analysis::cost::Costs;
use xla_service::thunks::{ThunkId, ThunkKind, ThunkSequence};

use super::RunContext;

/// What the span of a thunk says.
struct Facts {
    name: String,
    kind: &'static str,
    flops: u64,
    bytes: u64,
}

/// The thunks of a profiled program.
pub(crate) struct ThunkTable(HashMap<ThunkId, Facts>);

/// The spans of thunks that have begun, the innermost last.
#[derive(Default)]
pub(crate) struct OpenThunks(Vec<EnteredSpan>);

impl ThunkTable {
    /// What there is to say of the thunks of a module.
    pub fn new(module: &Module, sequence: &ThunkSequence) -> ThunkTable {
        let mut costs = Costs::new(module);
        let facts = sequence.walk().map(|thunk| {
            let cost = costs.of(thunk.computation, thunk.instruction);
            let flops = cost.flops.saturating_add(cost.transcendentals);
            let facts = Facts { name: thunk.name.clone(), kind: kind(&thunk.kind), flops, bytes: cost.bytes() };
            (thunk.id, facts)
        });
        ThunkTable(facts.collect())
    }
}

impl Drop for OpenThunks {
    /// Innermost first, where a failure left some.
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

fn kind(kind: &ThunkKind) -> &'static str {
    match kind {
        ThunkKind::Kernel(_) => "kernel",
        ThunkKind::LibraryCall(_) => "library call",
        ThunkKind::Copy => "copy",
        ThunkKind::While { .. } => "while",
        ThunkKind::Conditional { .. } => "conditional",
        ThunkKind::CustomCall => "custom call",
        ThunkKind::HostFallback => "host fallback",
    }
}

/// Thunk `id` begins.
pub(super) unsafe extern "C" fn xla_cpu_begin_thunk(context: *mut RunContext<'_>, id: i64) {
    // SAFETY: generated code passes on the context that it was started with, which outlives the run and which nobody
    // else uses meanwhile.
    let context = unsafe { &mut *context };
    let begin = || {
        let id = ThunkId(id as u32);
        let Some(Facts { name, kind, flops, bytes }) = context.thunks.and_then(|table| table.0.get(&id)) else {
            return;
        };
        context.open.0.push(tracing::trace_span!("thunk", name, %id, kind, flops, bytes).entered());
    };
    // A panic of whoever listens must not unwind through generated code.
    let _ = catch_unwind(AssertUnwindSafe(begin));
}

/// The thunk that began last ends.
pub(super) unsafe extern "C" fn xla_cpu_end_thunk(context: *mut RunContext<'_>, _: i64) {
    // SAFETY: as above.
    let context = unsafe { &mut *context };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(context.open.0.pop())));
}
