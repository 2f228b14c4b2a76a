//! The rule for documentation: a paragraph begins with a verb or a noun, so that one finds it by its subject.

use super::Finding;
use super::lexer::Line;

/// Words that begin half a question.
const QUESTIONS: &[&str] = &["What", "How", "Who", "Whom", "Which", "Where", "Why"];

/// Checks the first line of each paragraph of documentation.
pub fn check(path: &str, lines: &[Line]) -> Vec<Finding> {
    let texts: Vec<Option<&str>> = lines.iter().map(documentation).collect();
    let begins = |number: usize| number == 0 || texts[number - 1].is_none_or(str::is_empty);
    let paragraphs = texts.iter().enumerate().filter(|&(number, _)| begins(number));
    let questions = paragraphs.filter_map(|(number, text)| {
        let first = text.and_then(|text| text.split(' ').next())?;
        QUESTIONS.contains(&first).then(|| {
            let advice = format!("`{first} ...` is half a question; begin with a verb or with the noun itself");
            Finding::failure(path, number + 1, "doc-begin", advice)
        })
    });
    questions.collect()
}

/// The text of a line of documentation.
fn documentation(line: &Line) -> Option<&str> {
    let comment = line.comment.trim();
    let text = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"))?;
    line.code.trim().is_empty().then(|| text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::lexer::lines;

    #[test]
    fn questions_at_the_begin_of_a_paragraph_are_found() {
        let text = "//! How to.\n\n/// A noun.\n///\n/// What else\n/// Where it goes on\nfn f() {} // Why not\n/// Whatever.\n";
        let found = check("a.rs", &lines(text));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 5]);
    }
}
