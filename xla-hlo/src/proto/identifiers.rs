//! Identifiers that text can spell.

/// The name with everything that text could not spell as `_`; `otherwise` if there is none.
pub fn sanitized(name: &str, otherwise: &str) -> String {
    if name.is_empty() {
        return otherwise.to_string();
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut out: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if out.starts_with(|c: char| !c.is_ascii_alphabetic() && c != '_') {
        out.replace_range(..1, "_");
    }
    out
}
