//! Unique names.

use std::collections::HashMap;

/// Returns `wish`, or its stem with the next free number if it is taken; `next` holds the next number of each stem.
pub(crate) fn unique(wish: &str, next: &mut HashMap<String, u32>, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(wish) {
        return wish.to_string();
    }
    let stem = match wish.rsplit_once('.') {
        Some((stem, digits))
            if !stem.is_empty() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            stem
        }
        _ => wish,
    };
    let next = next.entry(stem.to_string()).or_insert(1);
    loop {
        let candidate = format!("{stem}.{next}");
        *next += 1;
        if !is_taken(&candidate) {
            return candidate;
        }
    }
}
