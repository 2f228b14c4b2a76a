//! Phrasings that make comments hard to read. Each is legal English; their density is the problem.

use crate::lexer::is_word;

/// Phrases as sequences of words and punctuation marks. `|` separates alternatives, `^` is the start of a sentence. A
/// phrase with a capital letter matches that spelling alone.
const MARKERS: &[&[&str]] = &[
    &["what"],
    &["those", "that|of|which|who"],
    &["of|in|at|by|to|for|from|with|on|after|before|beside", "which"],
    &["so|as", "many"],
    &["nobody|everybody|somebody|whoever|who"],
    &["tell|tells|told"],
    &["lie|lies|stand|stands"],
    &["beside|behind"],
    &["apart|alike"],
    &["goes|give|gives"],
    &["one", "after", "the", "other"],
    &["way|ways"],
    &["turns|rounds"],
    &["a", "turn|round"],
    &[",|;", "else"],
    &["else", "the"],
    &["^", "The", "same"],
    &["^", "As", "many"],
    &["^", "That", "of"],
    &["^", "Those", "of|that"],
    &["^", "Of"],
];

/// Whether a line of a comment has a marked phrasing.
pub fn is_marked(text: &str) -> bool {
    let tokens = tokens(text);
    MARKERS.iter().any(|marker| tokens.windows(marker.len()).any(|window| matches(marker, window)))
}

fn matches(marker: &[&str], tokens: &[&str]) -> bool {
    marker.iter().zip(tokens).all(|(words, token)| words.split('|').any(|word| word == *token))
}

/// Words, punctuation marks, and `^` at the start of each sentence.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = vec!["^"];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if !first.is_whitespace() {
            tokens.push(token);
        }
        if token == "." && after.starts_with(' ') {
            tokens.push("^");
        }
        rest = after;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::is_marked;

    #[test]
    fn phrasings_are_found_by_whole_words() {
        for marked in
            ["Of what it is.", "It, else not", "One. The same again", "takes turns", "a kernel by which it is done"]
        {
            assert!(is_marked(marked), "{marked}");
        }
        for plain in [
            "somewhat",
            "Offset",
            "always",
            "uses the same buffer",
            "returns a value",
            "if, elsewhere",
            "which of them",
        ] {
            assert!(!is_marked(plain), "{plain}");
        }
    }
}
