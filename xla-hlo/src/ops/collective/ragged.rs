//! Exchange of rows by a ragged-all-to-all.

use super::super::checks::{self, ensure};
use crate::{Literal, Result};

/// Copies rows of each member's operand 0 over operand 1 of the members, in the order of the senders and of their list
/// entries. A list has the same number of entries for each receiver. Rows out of bounds of either array are skipped;
/// operand 5, the number of rows to receive, is not read.
pub(super) fn exchange_rows(rows: &[Vec<Literal>]) -> Result<Vec<Vec<Literal>>> {
    let mut results: Vec<Literal> =
        rows.iter().map(|row| row.get(1).cloned().ok_or_else(checks::missing_operand)).collect::<Result<_>>()?;
    for sender in rows {
        let [input, _, read_at, sizes, write_at, _] = &sender[..] else { return Err(checks::missing_operand()) };
        let entries = sizes.array_shape().element_count();
        let members = rows.len();
        ensure!(
            entries.is_multiple_of(members),
            "ragged-all-to-all has lists of {entries} entries in a group of {members} devices"
        );
        let entries_of_member = entries / members;
        let number = |literal: &Literal, i: usize| literal.get(i).as_i128().unwrap_or_default();
        for entry in 0..entries {
            let (read_at, write_at) = (number(read_at, entry), number(write_at, entry));
            copy_rows(input, &mut results[entry / entries_of_member], read_at, write_at, number(sizes, entry));
        }
    }
    Ok(results.into_iter().map(|result| vec![result]).collect())
}

/// Copies the rows, of `count`, that are in bounds of both arrays, however large the numbers are.
fn copy_rows(input: &Literal, output: &mut Literal, read_at: i128, write_at: i128, count: i128) {
    let rows = |literal: &Literal| literal.array_shape().dims()[0] as i128;
    let (from_rows, to_rows) = (rows(input), rows(output));
    if from_rows == 0 || to_rows == 0 {
        return;
    }
    let row_bytes = input.bytes().len() / from_rows as usize;
    let first = 0.max(-read_at).max(-write_at);
    let end = count.min(from_rows - read_at).min(to_rows - write_at);
    for row in first..end {
        let (from, to) = ((read_at + row) as usize * row_bytes, (write_at + row) as usize * row_bytes);
        output.bytes_mut()[to..to + row_bytes].copy_from_slice(&input.bytes()[from..from + row_bytes]);
    }
}
