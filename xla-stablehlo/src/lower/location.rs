//! Conversion of source locations to metadata: the operation's name and type in the framework, and its stack frame or
//! source file and line.

use xla_hlo::Metadata;

use super::frames::{Frames, location, numbers};
use crate::ir::{AttrId, Location, Module};

/// Limit on the locations visited for one operation.
const MAX_STEPS: usize = 64;

/// Returns the metadata of an operation at a location.
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

/// Returns the metadata of an argument, which is only its name.
pub(super) fn of_argument(module: &Module, id: AttrId) -> Metadata {
    let [op_name, _] = names(module, id);
    Metadata { op_name, ..Metadata::default() }
}

/// Returns the names and types in a location, each joined with `;`. A name that ends in `:` is a type. The text after
/// `@` is the enclosing function.
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

/// Skips the outer names of a location that are not stack frames.
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

/// Sets the source file and line of a location without frames.
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
