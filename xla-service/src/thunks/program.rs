//! Thunk program: buffers, thunks and signature of an optimised module.

use xla_hlo::{Error, Module, Result, Shape};
use xla_passes::analysis;
use xla_passes::buffers::{AllocationKind, BufferAssignment, BufferOptions, assign_buffers};

use super::streams::{StreamProfile, StreamReport, ThunkCost, assign_streams};
use super::{BufferPlan, Lowering, Thunk, ThunkSequence};
use crate::compiler::OptimizedModule;
use crate::options::CompileOptions;
use crate::signature::Signature;
use crate::transfer::TransferManager;

/// Executable form of a module that is common to all backends: thunks and the locations of all values.
#[derive(Debug)]
pub struct ThunkProgram {
    /// Arguments and results, in the device's layouts.
    pub signature: Signature,
    /// Location of every value.
    pub assignment: BufferAssignment,
    /// Sources of the memory.
    pub plan: BufferPlan,
    /// Thunks of the entry computation.
    pub sequence: ThunkSequence,
    /// Report of the stream assignment, if there is one.
    pub streams: Option<StreamReport>,
}

impl ThunkProgram {
    /// Assigns buffers and builds the thunks; `lowering` compiles each operation.
    ///
    /// `transfer` determines the layout of arrays on the device, and the passes must have assigned layouts that the
    /// device supports (see [`TileProfile`](xla_passes::TileProfile)). Errors: those of [`ThunkSequence::from_module`]
    /// and of [`assign_buffers`].
    pub fn new(
        module: &OptimizedModule,
        lowering: &mut dyn Lowering,
        transfer: &dyn TransferManager,
        buffers: &BufferOptions,
        options: &CompileOptions,
    ) -> Result<ThunkProgram> {
        let memory_bytes = options.memory_limit.or(buffers.memory_bytes);
        let assignment = assign_buffers(module, &BufferOptions { memory_bytes, ..buffers.clone() })?;
        let signature = Signature::new(module, |shape| transfer.device_shape(shape))?;
        check_border(module)?;
        let plan = BufferPlan::new(module, &assignment, &signature)?;
        let sequence = ThunkSequence::from_module(module, &assignment, lowering, options.host_fallback)?;
        Ok(ThunkProgram { signature, assignment, plan, sequence, streams: None })
    }

    /// Assigns streams to the thunks; see [`assign_streams`](super::streams::assign_streams).
    pub fn assign_streams(&mut self, profile: &StreamProfile, cost: &dyn Fn(&Thunk) -> ThunkCost) -> Result<()> {
        self.streams = Some(assign_streams(&mut self.sequence, profile, cost)?);
        Ok(())
    }

    /// Returns the plan as text: thunks, allocations, locations of results, without the names of instructions.
    ///
    /// Machine code that was generated for one program is valid for another program with the same module and plan text.
    pub fn plan_text(&self) -> String {
        let mut text = self.sequence.without_names();
        for allocation in self.assignment.allocations() {
            let kind = match &allocation.kind {
                AllocationKind::Parameter { leaf, output, written } => format!("{leaf:?} {output:?} {written}"),
                AllocationKind::Output { path } => format!("output {path:?}"),
                // Omits the instruction id, which changes when a module is serialised and parsed again.
                AllocationKind::Constant { value } => format!("constant {:?}", value.path),
                AllocationKind::Temporary => "temporary".to_string(),
            };
            let (id, size, alignment) = (allocation.id, allocation.size, allocation.alignment);
            text += &format!("{id}: {size} aligned to {alignment}, S({}), {kind}\n", allocation.memory_space);
        }
        for output in self.assignment.output_slices() {
            text += &format!("{output:?}\n");
        }
        text
    }

    /// Returns dump files by name: thunks, buffers, and the memory report as JSON. For a program on several streams
    /// also the schedule of its streams, as text and as SVG.
    pub fn dumps(&self, module: &Module) -> Vec<(String, String)> {
        let mut dumps = vec![
            ("thunks.txt".to_string(), self.sequence.to_string()),
            ("buffers.txt".to_string(), self.assignment.to_string()),
            ("memory.json".to_string(), analysis::json(&analysis::memory::report(module, &self.assignment))),
        ];
        if let Some(report) = self.streams.as_ref().filter(|report| report.uses_streams()) {
            dumps.push(("streams.txt".to_string(), report.to_string()));
            dumps.push(("timeline.svg".to_string(), report.svg()));
        }
        dumps
    }
}

/// Returns an error if the program would access arrays in a dimension order other than callers see.
fn check_border(module: &Module) -> Result<()> {
    let (entry, asked) = (module.entry(), module.entry_layout());
    let parameters = asked.parameters.iter().zip(entry.parameters());
    let pairs = parameters.map(|(asked, &id)| (asked, id)).chain([(&asked.result, entry.root())]);
    for (asked, id) in pairs {
        let order = |shape: &Shape| -> Vec<Vec<usize>> {
            shape.leaves().iter().filter_map(|(_, leaf)| Some(leaf.as_array()?.minor_to_major())).collect()
        };
        if order(asked) != order(entry[id].shape()) {
            let (name, shape) = (entry[id].name(), entry[id].shape());
            return Err(Error::internal(format!(
                "{name} of the optimised entry is {shape}, but callers expect {asked}"
            )));
        }
    }
    Ok(())
}
