//! Rows of a ragged-all-to-all.

use std::ops::Range;

use super::work::{Work, segments};
use crate::collective::{MemberArguments, Part, RowMove};

/// Number of the operand with the initial values of the result.
const INITIAL: usize = 1;

/// Writes elements of the results; `range` counts through the results of all members. Later senders and later entries
/// overwrite earlier ones.
pub(super) fn move_rows(work: &Work<'_>, range: Range<usize>) {
    let [input, output] = [work.spec.arrays()[0], work.spec.arrays()[INITIAL]];
    for (to, at, elements) in segments(range, output.outer * output.inner) {
        work.copy(output, (to, INITIAL, at), (to, 0, at), elements);
        for from in work.members() {
            let MemberArguments::Rows(rows) = &work.arguments[from] else { continue };
            let entries = rows.len() / work.spec.members();
            for entry in &rows[to * entries..(to + 1) * entries] {
                if let Some((read_at, written)) = clipped(entry, [input, output], at..at + elements) {
                    work.copy(output, (from, 0, read_at), (to, 0, written.start), written.len());
                }
            }
        }
    }
}

/// Returns the elements of the range that an entry writes, and the first element that it reads for them.
fn clipped(entry: &RowMove, [input, output]: [Part; 2], range: Range<usize>) -> Option<(usize, Range<usize>)> {
    let (read_at, write_at) = (i128::from(entry.read_at), i128::from(entry.write_at));
    let first = 0.max(-read_at).max(-write_at);
    let end = i128::from(entry.count).min(input.outer as i128 - read_at).min(output.outer as i128 - write_at);
    // In elements of the output from here on; rows of both arrays have the same size.
    let row = output.inner as i128;
    let start = ((write_at + first) * row).max(range.start as i128);
    let end = ((write_at + end) * row).min(range.end as i128);
    (start < end).then(|| ((start + (read_at - write_at) * row) as usize, start as usize..end as usize))
}
