//! Locations to metadata: the name of the operation in the framework, source file and line.

use xla_hlo::Metadata;

use crate::ir::{AttrId, Attribute, Location, Module, OpId};

/// Steps from one location to the next that are followed.
const MAX_STEPS: usize = 64;

/// The metadata of an operation's location, if it says anything.
pub(super) fn metadata(module: &Module, op: OpId) -> Option<Metadata> {
    let mut metadata = Metadata::default();
    let mut next = module.operations[op].location;
    for _ in 0..MAX_STEPS {
        let Some(location) = next.and_then(|id| location(module, id)) else { break };
        next = match location {
            Location::Unknown => None,
            Location::Name { name, child } => {
                if metadata.op_name.is_empty() {
                    metadata.op_name = module.string_attribute(*name)?.trim_end_matches(':').to_string();
                }
                Some(*child)
            }
            Location::CallSite { callee, .. } => Some(*callee),
            Location::Fused { locations, .. } => locations.first().copied(),
            Location::File { file, range } => {
                metadata.source_file = module.string_attribute(*file)?.into_owned();
                metadata.source_line = range.first().and_then(|&line| i64::try_from(line).ok()).unwrap_or(0);
                None
            }
        };
    }
    (metadata != Metadata::default()).then_some(metadata)
}

fn location(module: &Module, id: AttrId) -> Option<&Location> {
    match &module.attributes[id] {
        Attribute::Location(location) => Some(location),
        _ => None,
    }
}
