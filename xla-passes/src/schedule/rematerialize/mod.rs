//! Rematerialization: recomputes cheap values close to their late uses to satisfy a memory limit.
//!
//! ```text
//! a = f(x)                a = f(x)
//! b = g(a)                b = g(a)
//! c = h(b)   peak    ─>   c = h(b)      a's memory is free here
//! d = k(c, a)             a' = f(x)
//!                         d = k(c, a')
//! ```
//!
//! Runs on a scheduled module after fusion, since stored values and their live ranges are only known then. A kernel
//! that stores several results is recomputed only for the needed one, which undoes useless stores of fusion. Each sweep
//! assigns buffers in a trial, inspects the values that are live at the peak, and recomputes the ones that free most
//! bytes for the least work.

mod candidate;
mod edit;
mod trial;

use std::collections::HashSet;

use candidate::{Candidate, candidates};
use edit::Edit;
use trial::Trial;
use xla_hlo::{Module, Result};

use crate::{Pass, PassContext};

/// Reduces the memory of a scheduled module to the limit of the target's profile, or as far as recomputation can. Does
/// nothing without a limit, below it, or if the module has no schedule yet.
///
/// If the peak stays above the limit, [`assign_buffers`](crate::buffers::assign_buffers) reports an error that names
/// the values at the peak.
pub struct Rematerialize;

/// Maximum number of trials. Each takes as long as one buffer assignment.
const MAX_SWEEPS: usize = 48;

impl Pass for Rematerialize {
    fn name(&self) -> &'static str {
        "rematerialize"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let Some(limit) = cx.profile().memory_bytes else { return Ok(()) };
        for edit in plan(module, limit)? {
            if !cx.allow_rewrite(self.name()) {
                break;
            }
            tracing::debug!(value = edit.name(module), "computed again");
            edit.apply(module)?;
        }
        Ok(())
    }
}

/// Returns the edits that reduce memory most, or just below the limit.
fn plan(module: &Module, limit: u64) -> Result<Vec<Edit>> {
    let Some(mut now) = Trial::new(module.clone())? else { return Ok(Vec::new()) };
    let (mut edits, mut best) = (Vec::new(), (now.bytes(), 0));
    // Edits without success, and the number of edits before memory is measured again.
    let mut failed: HashSet<Edit> = HashSet::new();
    let mut at_once = usize::MAX;
    for _ in 0..MAX_SWEEPS {
        if now.bytes() <= limit {
            break;
        }
        let batch = choose(candidates(&now)?, &failed, now.bytes() - limit, at_once);
        if batch.is_empty() {
            break;
        }
        let mut module = now.module.clone();
        batch.iter().try_for_each(|edit| edit.apply(&mut module))?;
        match Trial::new(module)?.filter(|next| next.cost() < now.cost()) {
            Some(next) => {
                now = next;
                edits.extend(batch);
                at_once = usize::MAX;
                if now.bytes() < best.0 {
                    best = (now.bytes(), edits.len());
                }
            }
            // Several edits may conflict, so retry them one at a time. A single edit that does not help has failed.
            None if batch.len() > 1 => at_once = 1,
            None => failed.extend(batch),
        }
    }
    edits.truncate(best.1);
    Ok(edits)
}

/// Returns the best candidates until `excess` bytes are freed. None of them reads a value that another one frees.
fn choose(candidates: Vec<Candidate>, failed: &HashSet<Edit>, excess: u64, at_once: usize) -> Vec<Edit> {
    let (mut freed, mut needed) = (HashSet::new(), HashSet::new());
    let mut bytes = 0u64;
    let mut chosen = Vec::new();
    for candidate in candidates {
        if bytes >= excess || chosen.len() == at_once {
            break;
        }
        let clash = needed.contains(&candidate.value) || candidate.reads.iter().any(|read| freed.contains(read));
        if clash || failed.contains(&candidate.edit) {
            continue;
        }
        bytes = bytes.saturating_add(candidate.bytes);
        freed.insert(candidate.value);
        needed.extend(candidate.reads);
        chosen.push(candidate.edit);
    }
    chosen
}
