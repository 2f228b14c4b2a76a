//! The rule for names of files: a Rust file that a comment or a document names is there.

use crate::Finding;
use crate::lexer::{Line, is_word};

/// Checks the comments of a Rust file.
pub fn check_comments(path: &str, lines: &[Line], files: &[String]) -> Vec<Finding> {
    let comments = lines.iter().map(|line| line.comment.as_str());
    check(path, comments, files)
}

/// Checks a document.
pub fn check_text(path: &str, content: &str, files: &[String]) -> Vec<Finding> {
    check(path, content.lines(), files)
}

fn check<'a>(path: &str, lines: impl Iterator<Item = &'a str>, files: &[String]) -> Vec<Finding> {
    let mut found = Vec::new();
    // What a build makes is in its own folder.
    for (number, line) in lines.enumerate().filter(|(_, line)| !line.contains("OUT_DIR")) {
        for name in rust_files(line).filter(|name| !is_there(name, files)) {
            let advice = format!("there is no file `{name}`; say where it is now");
            found.push(Finding::failure(path, number + 1, "reference", advice));
        }
    }
    found
}

/// The names in a text that end in `.rs`, with the folders in front of them.
fn rust_files(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| is_word(c) || "/.-*{}<>".contains(c);
    text.match_indices(".rs").filter_map(move |(at, _)| {
        let end = at + ".rs".len();
        let ends = !text[end..].starts_with(|c: char| is_word(c) || c == '-' || c == '/');
        let start = text[..at].rfind(|c: char| !is_part(c)).map_or(0, |before| before + 1);
        // A name to be filled in, `NAME.rs` or `*.rs`, and one that is left out.
        let name = text.get(start..end)?;
        let stem = name.rsplit('/').next()?.strip_suffix(".rs")?;
        let is_name = !stem.is_empty() && stem.chars().any(char::is_lowercase) && !name.contains(['*', '{', '<']);
        // `//` is a part of an address.
        (ends && is_name && !name.contains("//")).then_some(name)
    })
}

/// Whether a file is called so, in a folder of whatever name if none is said.
fn is_there(name: &str, files: &[String]) -> bool {
    let name = name.trim_start_matches("../").trim_start_matches("./");
    files.iter().any(|file| file == name || file.strip_suffix(name).is_some_and(|folder| folder.ends_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_gone_are_found() {
        let files = ["a/src/kept.rs".to_owned(), "a/src/room/lib.rs".to_owned()];
        let text = "see `kept.rs`, src/kept.rs,\nroom/lib.rs and gone.rs;\n`NAME.rs`, *_test.rs, docs.rs/x, ../src/lib.rs\n\"/made.rs\" in OUT_DIR";
        let found: Vec<(usize, String)> =
            check_text("README.md", text, &files).into_iter().map(|f| (f.line, f.advice)).collect();
        let gone = |name: &str| format!("there is no file `{name}`; say where it is now");
        assert_eq!(found, [(2, gone("gone.rs")), (3, gone("../src/lib.rs"))]);
    }
}
