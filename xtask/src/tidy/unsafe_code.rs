//! The rules for `unsafe`: only in listed files, and each use under a comment that can be checked on the spot.

use super::Finding;
use super::lexer::{Line, has_word, lines};

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
    let uses = || lines.iter().enumerate().filter(|(_, line)| is_unsafe(&line.code));
    let mut found = Vec::new();
    if let Some((first, _)) = uses().next()
        && !listed.iter().any(|listed| listed == path)
    {
        let advice =
            format!("use safe code, call a module of {LIST}, or add this file there with a reason in its `expect`");
        found.push(Finding::failure(path, first + 1, "unsafe", advice));
    }
    for (number, _) in uses().filter(|(number, line)| needs_comment(&line.code) && !is_explained(lines, *number)) {
        let advice = "say above it in a `// SAFETY:` comment why it is sound, so that it can be checked here";
        found.push(Finding::failure(path, number + 1, "unsafe", advice));
    }
    found
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

/// Blocks, implementations and foreign blocks make a promise on the spot; functions pass one on in their documentation.
fn needs_comment(code: &str) -> bool {
    code.match_indices("unsafe").any(|(at, word)| {
        let after = code[at + word.len()..].trim_start();
        after.is_empty()
            || after.starts_with('{')
            || after.starts_with("impl")
            || (after.starts_with("extern") && !has_word(after, "fn"))
    })
}

/// Whether a comment with `SAFETY:` is on the line or above its statement.
fn is_explained(lines: &[Line], number: usize) -> bool {
    if lines[number].comment.contains("SAFETY:") {
        return true;
    }
    let mut in_comment = false;
    for line in lines[..number].iter().rev() {
        let code = line.code.trim();
        if code.is_empty() && !line.comment.is_empty() {
            in_comment = true;
            if line.comment.contains("SAFETY:") {
                return true;
            }
        } else if in_comment || code.is_empty() || (code.ends_with([';', '{', '}', ',']) && !code.starts_with('#')) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, listed: &[&str]) -> Vec<usize> {
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        check("a/src/ffi.rs", &lines(source), &listed).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unsafe_stands_in_listed_files() {
        let source = "// SAFETY: x is valid.\nlet y = unsafe { *x };\n";
        assert_eq!(found(source, &[]), [2]);
        assert!(found(source, &["a/src/ffi.rs"]).is_empty());
        assert!(found("type F = unsafe extern \"C\" fn(u8);\ntype G = unsafe fn(u8);\n", &[]).is_empty());
        assert_eq!(found("unsafe extern \"C\" fn f(x: u8) {}\n", &[]), [1]);
        assert!(found("// unsafe\n#![expect(unsafe_code)]\nf(\"unsafe\")", &[]).is_empty());
    }

    #[test]
    fn every_use_is_explained() {
        let listed = &["a/src/ffi.rs"];
        assert_eq!(found("f();\nunsafe { g() }\n", listed), [2]);
        assert_eq!(found("// SAFETY: old.\nf();\nunsafe { g() }\n", listed), [3]);
        assert_eq!(found("unsafe impl Send for X {}\n", listed), [1]);
        assert_eq!(found("unsafe extern \"C\" {\n", listed), [1]);
        assert!(found("// SAFETY: one\n// two.\n#[inline]\nlet x =\n    unsafe { g() };\n", listed).is_empty());
        assert!(found("unsafe { g() } // SAFETY: g is safe here.\n", listed).is_empty());
        assert!(found("type F = unsafe extern \"C\" fn(u32);\npub unsafe fn f() {}\n", listed).is_empty());
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
