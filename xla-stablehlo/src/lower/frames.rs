//! Stack frames of source locations, as deduplicated tables that instructions refer to.

use std::collections::HashMap;

use xla_hlo::{FileLocation, StackFrame, StackTables};

use crate::ir::{AttrId, Attribute, Location, Module};

/// Limit on the locations visited per lookup; deep or shared call sites are cut off.
const MAX_STEPS: usize = 1000;

/// Stack frame tables under construction.
#[derive(Default)]
pub(super) struct Frames {
    pub tables: StackTables,
    files: HashMap<String, i64>,
    functions: HashMap<String, i64>,
    places: HashMap<(i64, i64, i64, i64), i64>,
    frames: HashMap<(i64, i64), i64>,
    known: HashMap<AttrId, i64>,
}

impl Frames {
    /// Returns the 1-based index of a location's innermost frame; 0 if it has none.
    pub fn innermost(&mut self, module: &Module, id: AttrId) -> i64 {
        if let Some(&frame) = self.known.get(&id) {
            return frame;
        }
        let mut frame = 0;
        let mut next = vec![id];
        for _ in 0..MAX_STEPS {
            let Some(id) = next.pop() else { break };
            match location(module, id) {
                Some(Location::Name { name, child }) => match location(module, *child) {
                    Some(Location::File { file, range }) => frame = self.add(module, [*name, *file], range, frame),
                    _ => next.push(*child),
                },
                // The caller's frames are the parents of the callee's frames.
                Some(Location::CallSite { callee, caller }) => next.extend([*callee, *caller]),
                // Fused operations are unrelated, so the stack of the first one is used.
                Some(Location::Fused { locations, .. }) => next.extend(locations.first()),
                Some(Location::File { .. } | Location::Unknown) | None => {}
            }
        }
        self.known.insert(id, frame);
        frame
    }

    fn add(&mut self, module: &Module, [function, file]: [AttrId; 2], range: &[u32], parent: i64) -> i64 {
        let text = |id| module.string_attribute(id).unwrap_or_default().into_owned();
        let file_name_id = named(&mut self.files, &mut self.tables.file_names, text(file));
        let function_name_id = named(&mut self.functions, &mut self.tables.function_names, text(function));
        let [line, column, end_line, end_column] = numbers(range);
        let places = &mut self.tables.file_locations;
        let place = *self.places.entry((file_name_id, function_name_id, line, column)).or_insert_with(|| {
            places.push(FileLocation { file_name_id, function_name_id, line, end_line, column, end_column });
            places.len() as i64
        });
        let frames = &mut self.tables.stack_frames;
        *self.frames.entry((place, parent)).or_insert_with(|| {
            frames.push(StackFrame { file_location_id: place, parent_frame_id: parent });
            frames.len() as i64
        })
    }
}

/// Returns the 1-based index of a name in a table.
fn named(known: &mut HashMap<String, i64>, table: &mut Vec<String>, name: String) -> i64 {
    *known.entry(name).or_insert_with_key(|name| {
        table.push(name.clone());
        table.len() as i64
    })
}

pub(super) fn location(module: &Module, id: AttrId) -> Option<&Location> {
    match &module.attributes[id] {
        Attribute::Location(location) => Some(location),
        _ => None,
    }
}

/// Returns line, column, last line and last column of a range; 0 if unknown.
pub(super) fn numbers(range: &[u32]) -> [i64; 4] {
    let at = |i: usize| range.get(i).map(|&at| i64::from(at));
    let (line, column) = (at(0).unwrap_or(0), at(1).unwrap_or(0));
    // Three numbers are one line with a first and last column.
    match range.len() {
        3 => [line, column, line, at(2).unwrap_or(column)],
        _ => [line, column, at(2).unwrap_or(line), at(3).unwrap_or(column)],
    }
}
