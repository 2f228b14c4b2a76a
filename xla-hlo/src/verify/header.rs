//! Checks of the header against the computations: entry layout, aliasing, donation, schedule.

use std::collections::HashSet;

use super::Report;
use super::shapes::complaint_about;
use crate::{CompId, Computation, InstrId, ParameterLeaf, Shape};

pub(super) fn check(report: &mut Report<'_>) {
    let module = report.module;
    if module.ids().all(|id| id != module.entry_id()) {
        report.module("the entry computation was removed");
        return;
    }
    check_entry_layout(report);
    check_aliases(report);
    for (id, computation) in module.iter() {
        if let Some(schedule) = computation.schedule() {
            check_schedule(report, id, computation, schedule);
        }
    }
}

fn check_entry_layout(report: &mut Report<'_>) {
    let module = report.module;
    let Some(layout) = &module.attributes().entry_computation_layout else { return };
    let entry = module.entry();
    if layout.parameters.len() != entry.parameters().len() {
        report.module(format!(
            "entry_computation_layout has {} parameters, the entry computation {}",
            layout.parameters.len(),
            entry.parameters().len()
        ));
        return;
    }
    let pairs = layout.parameters.iter().zip(entry.parameters()).map(|(said, &p)| (said, entry[p].shape()));
    for (said, is) in pairs.chain([(&layout.result, entry.result_shape())]) {
        if !said.compatible(is) {
            report.module(format!("entry_computation_layout has {said}, but the entry computation has {is}"));
        }
        let arrays = said.leaves().into_iter().filter_map(|(_, leaf)| leaf.as_array().and_then(complaint_about));
        arrays.for_each(|complaint| report.module(format!("entry_computation_layout: {complaint}")));
    }
}

fn check_aliases(report: &mut Report<'_>) {
    let module = report.module;
    let result = module.entry().result_shape();
    let mut outputs = HashSet::new();
    for alias in &module.attributes().input_output_alias {
        let (Some(output), Some(parameter)) = (result.subshape(&alias.output), leaf_shape(report, &alias.parameter))
        else {
            report.module(format!(
                "input_output_alias ties output {:?} to parameter {} {:?}, which do not both exist",
                alias.output, alias.parameter.parameter, alias.parameter.path
            ));
            continue;
        };
        if !can_share_memory(output, parameter) {
            report.module(format!(
                "input_output_alias ties an output of {output} to a parameter of {parameter}, which differs in size"
            ));
        }
        if !outputs.insert(&alias.output) {
            report.module(format!("input_output_alias names output {:?} twice", alias.output));
        }
    }
    for donor in &module.attributes().buffer_donors {
        if leaf_shape(report, donor).is_none() {
            report.module(format!(
                "buffer_donor names parameter {} {:?}, which does not exist",
                donor.parameter, donor.path
            ));
        }
    }
}

/// Whether values of the two shapes can share memory: compatible shapes, or arrays with the same number of bytes.
fn can_share_memory(output: &Shape, parameter: &Shape) -> bool {
    let are_arrays = output.as_array().is_some() && parameter.as_array().is_some();
    output.compatible(parameter) || (are_arrays && output.byte_size() == parameter.byte_size())
}

fn leaf_shape<'m>(report: &Report<'m>, leaf: &ParameterLeaf) -> Option<&'m Shape> {
    let entry = report.module.entry();
    let parameter = entry.parameters().get(leaf.parameter)?;
    entry[*parameter].shape().subshape(&leaf.path)
}

fn check_schedule(report: &mut Report<'_>, id: CompId, computation: &Computation, schedule: &[InstrId]) {
    let mut done = HashSet::with_capacity(schedule.len());
    for &instr in schedule {
        let Some(instruction) = computation.get(instr) else {
            report.computation(id, "the schedule names an instruction that was removed");
            return;
        };
        let mut before = instruction.operands().iter().chain(instruction.control_predecessors());
        if let Some(&late) = before.find(|o| !done.contains(*o)) {
            report.instruction(
                computation,
                instr,
                format!("is scheduled before %{}, which it needs", computation[late].name()),
            );
        }
        if !done.insert(instr) {
            report.instruction(computation, instr, "is scheduled twice");
        }
    }
    if done.len() != computation.len() {
        report.computation(id, format!("{} instructions are not in the schedule", computation.len() - done.len()));
    }
}
