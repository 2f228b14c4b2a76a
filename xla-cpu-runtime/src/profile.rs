//! Profiles: a `tracing` span with the cost of each thunk of a program.

use std::collections::HashMap;

use tracing::span::EnteredSpan;
use xla_hlo::Module;
use xla_passes::analysis::cost::Costs;
use xla_service::thunks::{ThunkId, ThunkKind, ThunkSequence};

/// Fields of a thunk's span.
struct Facts {
    name: String,
    kind: &'static str,
    flops: u64,
    bytes: u64,
}

/// Names and costs of a program's thunks, for profiled runs.
pub struct ThunkTable(HashMap<ThunkId, Facts>);

/// Spans of thunks that have begun, the innermost last.
#[derive(Default)]
pub struct OpenThunks(Vec<EnteredSpan>);

impl ThunkTable {
    /// Whether a subscriber collects the spans of thunks, which have level `TRACE`.
    pub fn is_wanted() -> bool {
        tracing::span_enabled!(tracing::Level::TRACE)
    }

    /// Creates the table of the thunks of a module, with their costs.
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

impl OpenThunks {
    /// Opens the span of a thunk.
    pub fn begin(&mut self, id: ThunkId, table: &ThunkTable) {
        if let Some(Facts { name, kind, flops, bytes }) = table.0.get(&id) {
            self.0.push(tracing::trace_span!("thunk", name, %id, kind, flops, bytes).entered());
        }
    }

    /// Closes the span of the thunk that began last.
    pub fn end(&mut self) {
        self.0.pop();
    }
}

impl Drop for OpenThunks {
    /// Closes the spans that remain after a failure, innermost first.
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

fn kind(kind: &ThunkKind) -> &'static str {
    match kind {
        ThunkKind::Kernel(_) => "kernel",
        ThunkKind::LibraryCall(call) => call.op.label(),
        ThunkKind::Copy => "copy",
        ThunkKind::While { .. } => "while",
        ThunkKind::Conditional { .. } => "conditional",
        ThunkKind::Collective(_) => "collective",
        ThunkKind::CustomCall => "custom call",
        ThunkKind::HostFallback => "host fallback",
    }
}
