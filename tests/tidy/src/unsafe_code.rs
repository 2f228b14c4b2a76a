//! The rules for `unsafe`: only in listed files, and foreign blocks under a comment with `SAFETY:`. Clippy checks the
//! comments of other uses.

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
pub fn check(path: &str, lines: &[Line], listed: &[String]) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(first) = lines.iter().position(|line| is_unsafe(&line.code))
        && !listed.iter().any(|listed| listed == path)
    {
        let advice =
            format!("use safe code, call a module of {LIST}, or add this file there with a reason in its `expect`");
        found.push(Finding::failure(path, first + 1, "unsafe", advice));
    }
    for (number, line) in lines.iter().enumerate() {
        if is_foreign_block(&line.code) && !is_explained(&lines[..number]) {
            let advice = "state in a `// SAFETY:` comment above it why the declarations are right";
            found.push(Finding::failure(path, number + 1, "unsafe", advice));
        }
    }
    found
}

fn is_foreign_block(code: &str) -> bool {
    let code = code.trim();
    code.starts_with("unsafe extern") && code.ends_with('{') && !has_word(code, "fn")
}

/// Whether the last of the lines are comments and attributes, and one of them has `SAFETY:`.
fn is_explained(above: &[Line]) -> bool {
    let is_part = |line: &&Line| match line.code.trim() {
        "" => !line.comment.is_empty(),
        code => code.starts_with("#["),
    };
    above.iter().rev().take_while(is_part).any(|line| line.comment.contains("SAFETY:"))
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
    fn foreign_blocks_are_explained() {
        let listed = &["a/src/ffi.rs"];
        let block = "unsafe extern \"C\" {\n    fn f();\n}\n";
        assert_eq!(found(&format!("// SAFETY: old.\ng();\n{block}"), listed), [3]);
        assert!(found(&format!("// SAFETY: one\n// two.\n#[link(name = \"c\")]\n{block}"), listed).is_empty());
        assert!(found("unsafe extern \"C\" fn f() {\n}\n", listed).is_empty());
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
