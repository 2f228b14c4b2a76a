//! Openings of documentation: a paragraph begins with a verb or a noun, so that readers find it by its subject.

use crate::Finding;
use crate::lexer::Line;

/// Openings without a subject.
const OPENINGS: &[&str] = &[
    "What", "How", "Who", "Whom", "Which", "Where", "Why", "Of", "Those", "That of", "The same", "As many", "So many",
];

/// Checks the first line of each paragraph of documentation.
pub fn check(path: &str, lines: &[Line]) -> Vec<Finding> {
    let texts: Vec<Option<&str>> = lines.iter().map(documentation).collect();
    let begins = |number: usize| number == 0 || texts[number - 1].is_none_or(str::is_empty);
    let paragraphs = texts.iter().enumerate().filter(|&(number, _)| begins(number));
    let findings = paragraphs.filter_map(|(number, text)| {
        let text = text.as_ref()?;
        let opens = |opening: &&&str| text.strip_prefix(**opening).is_some_and(|rest| rest.starts_with(' '));
        let opening = OPENINGS.iter().find(opens)?;
        let advice = format!("`{opening} ...` has no subject; begin with a verb or with the noun itself");
        Some(Finding::failure(path, number + 1, "doc-begin", advice))
    });
    findings.collect()
}

/// Text of a line of documentation.
fn documentation(line: &Line) -> Option<&str> {
    let comment = line.comment.trim();
    let text = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"))?;
    line.code.trim().is_empty().then(|| text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::lines;

    #[test]
    fn paragraphs_without_a_subject_are_found() {
        let text = "//! How to.\n\n/// A noun.\n///\n/// What else\n/// Where it goes on\nfn f() {} // Why not\n/// Whatever.\n\n\
                    /// The same again.\n\n/// Offset.\n\n/// That is all.\n";
        let found = check("a.rs", &lines(text));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 5, 10]);
    }
}
