//! Memory report: bytes that a program needs, and the values alive at its peak.

use std::fmt;

use serde::Serialize;
use xla_hlo::Module;

use crate::buffers::{AllocationKind, BufferAssignment};

/// Memory that a program needs, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryReport {
    /// The module's name.
    pub module: String,
    /// Parameters.
    pub argument_bytes: usize,
    /// Results that do not lie in parameters.
    pub output_bytes: usize,
    /// Results that lie in parameters.
    pub alias_bytes: usize,
    /// Constants.
    pub constant_bytes: usize,
    /// Scratch memory of one execution.
    pub temp_bytes: usize,
    /// The moment at which most scratch memory is needed.
    pub peak: PeakReport,
}

/// The moment at which most scratch memory is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PeakReport {
    /// Bytes that are needed then: no packing can do with less than this.
    pub bytes: usize,
    /// The instruction that runs then.
    pub instruction: String,
    /// Its number among the steps of the program.
    pub step: usize,
    /// Values live then, largest first.
    pub makers: Vec<PeakMaker>,
}

/// A value that is alive at the peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PeakMaker {
    /// `%name{path} f32[8,8]` in its computation.
    pub value: String,
    /// Its bytes.
    pub bytes: usize,
    /// The instruction that writes it.
    pub written_by: String,
    /// The last one that needs it.
    pub last_read_by: String,
    /// The framework's name of the operation, where the program says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub op_name: String,
}

/// The report of an assignment of the buffers of `module`.
pub fn report(module: &Module, assignment: &BufferAssignment) -> MemoryReport {
    let bytes = |wanted: fn(&AllocationKind) -> bool| {
        assignment.allocations().iter().filter(|a| wanted(&a.kind)).map(|a| a.size).fold(0, usize::saturating_add)
    };
    let step = |step: usize| match assignment.steps().get(step) {
        Some(&(computation, id)) => format!("%{}", module[computation][id].name()),
        None => String::new(),
    };
    let peak = assignment.peak();
    let maker = |value: &crate::buffers::LiveValue| {
        let (computation, id) = (value.value.computation, value.value.instruction);
        let annotations = module.get(computation).and_then(|c| c.get(id)).and_then(|i| i.annotations());
        PeakMaker {
            value: value.name.clone(),
            bytes: value.slice.size,
            written_by: step(value.from),
            last_read_by: step(value.until),
            op_name: annotations.map(|a| a.metadata.op_name.clone()).unwrap_or_default(),
        }
    };
    let makers = peak.values.iter().filter_map(|&i| assignment.values().get(i)).map(maker).collect();
    MemoryReport {
        module: module.name().to_string(),
        argument_bytes: bytes(|kind| matches!(kind, AllocationKind::Parameter { .. })),
        output_bytes: bytes(|kind| matches!(kind, AllocationKind::Output { .. })),
        alias_bytes: bytes(|kind| matches!(kind, AllocationKind::Parameter { output: Some(_), .. })),
        constant_bytes: bytes(|kind| matches!(kind, AllocationKind::Constant { .. })),
        temp_bytes: assignment.temp_bytes(),
        peak: PeakReport { bytes: peak.bytes, instruction: step(peak.step), step: peak.step, makers },
    }
}

/// The report for people.
impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "memory of {}", self.module)?;
        let rows = [
            (self.argument_bytes, "arguments"),
            (self.output_bytes, "outputs"),
            (self.alias_bytes, "outputs in arguments"),
            (self.constant_bytes, "constants"),
            (self.temp_bytes, "temporary"),
        ];
        rows.iter().try_for_each(|(bytes, what)| writeln!(f, "{bytes:>14}  {what}"))?;
        let PeakReport { bytes, instruction, step, makers } = &self.peak;
        writeln!(f, "\npeak: {bytes} temporary bytes at step {step}, {instruction}; alive then")?;
        for PeakMaker { value, bytes, written_by, last_read_by, op_name } in makers {
            let name = if op_name.is_empty() { String::new() } else { format!("  ({op_name})") };
            writeln!(f, "{bytes:>14}  {value}: from {written_by} to {last_read_by}{name}")?;
        }
        Ok(())
    }
}
