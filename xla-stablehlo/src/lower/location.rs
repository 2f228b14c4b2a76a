//! Locations to metadata: the name of the operation in the framework, its type, stack frame or source file and line.

use xla_hlo::Metadata;

use super::frames::{Frames, location, numbers};
use crate::ir::{AttrId, Location, Module};

/// Locations that are followed from one on.
const MAX_STEPS: usize = 64;

/// The metadata of an operation at a location.
pub(super) fn metadata(module: &Module, frames: &mut Frames, id: AttrId) -> Metadata {
    let [op_name, op_type] = names(module, id);
    let mut metadata = Metadata { op_name, op_type, ..Metadata::default() };
    let place = without_names(module, id);
    metadata.stack_frame_id = frames.innermost(module, place);
    if metadata.stack_frame_id == 0 {
        set_file(module, place, &mut metadata);
    }
    metadata
}

/// The metadata of an argument: its name alone.
pub(super) fn of_argument(module: &Module, id: AttrId) -> Metadata {
    let [op_name, _] = names(module, id);
    Metadata { op_name, ..Metadata::default() }
}

/// Names and types that a location says, in order with `;` between them. A type ends in `:`; what follows `@` is the
/// function that the operation is in.
fn names(module: &Module, id: AttrId) -> [String; 2] {
    let (mut names, mut types) = (Vec::new(), Vec::new());
    let mut next = vec![id];
    for _ in 0..MAX_STEPS {
        let Some(id) = next.pop() else { break };
        match location(module, id) {
            Some(Location::Name { name, child }) => {
                let text = module.string_attribute(*name).unwrap_or_default();
                let name = text.split('@').next().unwrap_or_default();
                match name.strip_suffix(':') {
                    Some(ty) => {
                        types.push(ty.to_string());
                        next.push(*child);
                    }
                    None => names.push(name.to_string()),
                }
            }
            Some(Location::CallSite { callee, .. }) => next.push(*callee),
            Some(Location::Fused { locations, .. }) => next.extend(locations.iter().rev().take(MAX_STEPS)),
            Some(Location::File { .. } | Location::Unknown) | None => {}
        }
    }
    [names.join(";"), types.join(";")]
}

/// The location behind the names in front of it that name no frame.
fn without_names(module: &Module, mut id: AttrId) -> AttrId {
    for _ in 0..MAX_STEPS {
        match location(module, id) {
            Some(Location::Name { child, .. }) if !matches!(location(module, *child), Some(Location::File { .. })) => {
                id = *child;
            }
            _ => break,
        }
    }
    id
}

/// The file of a location outside of frames.
fn set_file(module: &Module, id: AttrId, metadata: &mut Metadata) {
    let found = match location(module, id) {
        Some(Location::Fused { locations, .. }) => locations.last().copied().unwrap_or(id),
        _ => id,
    };
    if let Some(Location::File { file, range }) = location(module, found) {
        metadata.source_file = module.string_attribute(*file).unwrap_or_default().into_owned();
        let [line, column, end_line, end_column] = numbers(range);
        (metadata.source_line, metadata.source_end_line) = (line, end_line);
        (metadata.source_column, metadata.source_end_column) = (column, end_column);
    }
}
