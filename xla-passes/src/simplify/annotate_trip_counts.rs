//! Annotates loops with their trip counts.

use xla_hlo::{CompId, InstrId, Module, Result};

use crate::analysis::trip_count::trip_count;
use crate::{Pass, PassContext};

/// Writes `{"known_trip_count":{"n":"12"}}` into the backend configuration of counting loops if that is empty.
///
/// This is an annotation for backends and no edit of the program, so that the pass never reports a change.
pub struct AnnotateTripCounts;

impl Pass for AnnotateTripCounts {
    fn name(&self) -> &'static str {
        "annotate-trip-counts"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            let counts: Vec<(InstrId, u64)> =
                module[id].ids().filter_map(|i| Some((i, trip_count(module, id, i)?))).collect();
            for (instruction, n) in counts {
                let config = &mut module.computation_mut(id).annotations_mut(instruction).backend_config;
                if config.is_empty() {
                    *config = format!("{{\"known_trip_count\":{{\"n\":\"{n}\"}}}}").into();
                }
            }
        }
        Ok(())
    }
}
