//! "Did you mean": the known name that is nearest to an unknown one.

/// Maximum length of names that are compared. A typing error in a longer name is easy to see, and the comparison is
/// quadratic.
const LONGEST: usize = 64;

/// Maximum number of names that are compared.
const LOOKED_AT: usize = 10_000;

/// Returns `; did you mean X?` for the nearest of `names` within a few edits of `wrong`, otherwise an empty string.
pub fn did_you_mean<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    // A single letter is near to every other letter.
    let allowed = if wrong.len() < 2 { 0 } else { 1 + wrong.len() / 4 };
    let near = |name: &&str| name.len().abs_diff(wrong.len()) <= allowed && name.len().max(wrong.len()) <= LONGEST;
    let scored = names.into_iter().take(LOOKED_AT).filter(near).map(|name| (strsim::levenshtein(wrong, name), name));
    match scored.filter(|(d, _)| *d <= allowed).min() {
        Some((_, name)) => format!("; did you mean {name}?"),
        None => String::new(),
    }
}
