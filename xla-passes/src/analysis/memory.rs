//! Memory report: bytes that a program needs, and the values that are live at peak usage.

use std::fmt;

use serde::Serialize;
use xla_hlo::Module;

use crate::buffers::{AllocationKind, BufferAssignment};

/// Memory needs of a program in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryReport {
    /// Name of the module.
    pub module: String,
    /// Bytes of parameters.
    pub argument_bytes: usize,
    /// Bytes of results that do not alias parameters.
    pub output_bytes: usize,
    /// Bytes of results that alias parameters.
    pub alias_bytes: usize,
    /// Bytes of constants.
    pub constant_bytes: usize,
    /// Bytes of scratch memory of one execution.
    pub temp_bytes: usize,
    /// Time of peak scratch memory usage.
    pub peak: PeakReport,
}

/// Time of peak scratch memory usage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PeakReport {
    /// Bytes that are live at the peak. This is a lower bound for any buffer packing.
    pub bytes: usize,
    /// Instruction that runs at the peak.
    pub instruction: String,
    /// Index of that instruction among the steps of the program.
    pub step: usize,
    /// Values that are live at the peak, largest first.
    pub makers: Vec<PeakMaker>,
}

/// A value that is live at the peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PeakMaker {
    /// Text `%name{path} f32[8,8]` of the value.
    pub value: String,
    /// Size in bytes.
    pub bytes: usize,
    /// Instruction that writes the value.
    pub written_by: String,
    /// Last instruction that reads the value.
    pub last_read_by: String,
    /// Framework name of the operation, if the program states it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub op_name: String,
}

/// Returns the memory report for a buffer assignment of `module`.
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

/// Prints a table for humans.
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
