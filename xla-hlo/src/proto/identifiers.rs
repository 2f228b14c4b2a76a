//! Identifiers that the text form can spell.

/// Replaces each character that the text form cannot spell by `_`; returns `otherwise` for an empty name.
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
