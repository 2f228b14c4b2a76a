//! The rule for `unsafe`: only in listed files. Clippy asks for the comment of each use.

use crate::Finding;
use crate::lexer::{Line, has_word, lines};

/// List of the files that may contain `unsafe`.
pub const LIST: &str = "xtask/unsafe-files.txt";

/// The paths of the list.
pub fn listed(list: &str) -> Vec<String> {
    let lines = list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Finds lines of the list that are out of date. `read` returns the content of an existing file.
pub fn check_list(listed: &[String], read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let idle =
        |path: &&String| !read(path).is_some_and(|content| lines(&content).iter().any(|line| is_unsafe(&line.code)));
    let finding =
        |path: &String| Finding::failure(LIST, 0, "unsafe", format!("{path} has no unsafe code: take it off the list"));
    listed.iter().filter(idle).map(finding).collect()
}

/// Checks one file.
pub fn check(path: &str, lines: &[Line], listed: &[String]) -> Option<Finding> {
    let first = lines.iter().position(|line| is_unsafe(&line.code))?;
    let advice =
        || format!("use safe code, call a module of {LIST}, or add this file there with a reason in its `expect`");
    let is_listed = listed.iter().any(|listed| listed == path);
    (!is_listed).then(|| Finding::failure(path, first + 1, "unsafe", advice()))
}

fn is_unsafe(code: &str) -> bool {
    has_word(code, "unsafe")
        && code.match_indices("unsafe").any(|(at, word)| !is_function_type(&code[at + word.len()..]))
}

/// Whether the text after `unsafe` makes it a function's type, which does nothing.
fn is_function_type(after: &str) -> bool {
    let after = after.trim_start();
    let abi = after.strip_prefix("extern").and_then(|after| after.split('"').nth(2));
    abi.unwrap_or(after).trim_start().starts_with("fn(")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, listed: &[&str]) -> Vec<usize> {
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        check("a/src/ffi.rs", &lines(source), &listed).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unsafe_stands_in_listed_files() {
        let source = "f();\nlet y = unsafe { *x };\n";
        assert_eq!(found(source, &[]), [2]);
        assert!(found(source, &["a/src/ffi.rs"]).is_empty());
        assert!(found("type F = unsafe extern \"C\" fn(u8);\ntype G = unsafe fn(u8);\n", &[]).is_empty());
        assert_eq!(found("unsafe extern \"C\" fn f(x: u8) {}\n", &[]), [1]);
        assert!(found("// unsafe\n#![expect(unsafe_code)]\nf(\"unsafe\")", &[]).is_empty());
    }

    #[test]
    fn the_list_is_kept_up_to_date() {
        let listed = listed("# why\n\na.rs\nb.rs\ngone.rs\n");
        let read = |path: &str| match path {
            "a.rs" => Some("unsafe {}".to_owned()),
            "b.rs" => Some("// unsafe {}".to_owned()),
            _ => None,
        };
        let advice: Vec<_> = check_list(&listed, read).into_iter().map(|finding| finding.advice).collect();
        assert_eq!(
            advice,
            ["b.rs has no unsafe code: take it off the list", "gone.rs has no unsafe code: take it off the list"]
        );
    }
}
