//! The rules for Rust files: first line, width and sizes.

use crate::Finding;
use crate::lexer::{Line, is_word};

/// Lines of a file above which it must be split.
const FILE: usize = 600;

/// Columns of a line.
const WIDTH: usize = 120;

/// Lines of a function above which it must be split, unless it is a table.
const FUNCTION: usize = 80;

/// Crates whose public items must be documented, which the compiler checks if their `lib.rs` asks for it.
const DOCUMENTED: &[&str] = &[
    "xla",
    "xla-build",
    "xla-cpu-runtime",
    "xla-ffi",
    "xla-mpi",
    "xla-hlo",
    "xla-passes",
    "xla-pjrt",
    "xla-service",
    "xla-spmd",
    "xla-stablehlo",
];

/// Checks one file, given as it is and split by the lexer.
pub fn check(path: &str, content: &str, lines: &[Line]) -> Vec<Finding> {
    let mut found = Vec::new();
    if !content.starts_with("//! ") {
        found.push(Finding::failure(
            path,
            1,
            "module-doc",
            "begin the file with a `//!` sentence that says what it is for",
        ));
    }
    if !exempt_from_size(path) {
        found.extend(file_size(path, content.lines().count()));
        found.extend(function_sizes(path, lines));
    }
    found.extend(widths(path, lines));
    found.extend(public_docs(path, content));
    found
}

fn public_docs(path: &str, content: &str) -> Option<Finding> {
    const LINT: &str = "#![warn(missing_docs)]";
    let is_documented = DOCUMENTED.contains(&path.strip_suffix("/src/lib.rs")?);
    let advice = || format!("add `{LINT}` below the documentation of the crate");
    (is_documented && !content.contains(LINT)).then(|| Finding::failure(path, 1, "public-docs", advice()))
}

/// Tables and generated code may be long.
fn exempt_from_size(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.trim_end_matches(".rs");
    ["table", "tables", "generated"].iter().any(|kind| stem == *kind || stem.ends_with(&format!("_{kind}")))
}

fn file_size(path: &str, count: usize) -> Option<Finding> {
    let advice = || format!("{count} lines, {FILE} at most; split it by subject");
    (count > FILE).then(|| Finding::failure(path, 0, "size", advice()))
}

/// Lines that are too long even without the contents of strings.
fn widths(path: &str, lines: &[Line]) -> Vec<Finding> {
    let width = |line: &Line| line.code.chars().count() + line.comment.chars().count();
    // The rows of a table cannot be broken.
    let is_row = |line: &Line| line.comment.trim_start_matches(['/', '!']).trim_start().starts_with('|');
    let long = lines.iter().enumerate().filter(|(_, line)| width(line) > WIDTH && !is_row(line));
    let finding = |(number, line): (usize, &Line)| {
        let advice = format!("{} columns; break the line at {WIDTH}", width(line));
        Finding::failure(path, number + 1, "size", advice)
    };
    long.map(finding).collect()
}

/// Functions that are longer than two screens.
fn function_sizes(path: &str, lines: &[Line]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(at) = declaration(&line.code) else { continue };
        let Some(length) = body_end(lines, start, at).map(|end| end - start + 1) else { continue };
        if length > FUNCTION && !is_table(&lines[start..start + length]) {
            let advice = format!("{length} lines, {FUNCTION} at most; split it where it changes subject");
            found.push(Finding::failure(path, start + 1, "size", advice));
        }
    }
    found
}

/// Whether most lines are rows: arms of a match, or text.
fn is_table(lines: &[Line]) -> bool {
    let is_row = |line: &&Line| {
        let code = line.code.trim();
        code.contains("=>") || code.starts_with('|') || code.starts_with(['"', '(']) || code.is_empty()
    };
    2 * lines.iter().filter(is_row).count() > lines.len()
}

/// Position on a line where a function with a name is declared, if one is.
fn declaration(code: &str) -> Option<usize> {
    let mut places = code.match_indices("fn ").map(|(at, _)| at);
    places.find(|at| !code[..*at].ends_with(is_word) && code[at + 3..].starts_with(is_word))
}

/// Last line of the function declared at `column` of line `start`; `None` if it has no body.
fn body_end(lines: &[Line], start: usize, column: usize) -> Option<usize> {
    let (mut braces, mut others) = (0usize, 0usize);
    for (number, line) in lines.iter().enumerate().skip(start) {
        let code = if number == start { &line.code[column..] } else { &line.code };
        for c in code.chars() {
            match c {
                '(' | '[' => others += 1,
                ')' | ']' => others = others.saturating_sub(1),
                '{' => braces += 1,
                '}' => braces = braces.saturating_sub(1),
                ';' if braces == 0 && others == 0 => return None,
                _ => continue,
            }
            if c == '}' && braces == 0 && others == 0 {
                return Some(number);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer;

    fn rules(path: &str, content: &str) -> Vec<(usize, &'static str)> {
        check(path, content, &lexer::lines(content)).iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn a_file_begins_with_a_sentence() {
        assert_eq!(rules("a/src/lib.rs", "use x;\n"), [(1, "module-doc")]);
        assert!(rules("a/src/lib.rs", "//! What it is.\nuse x;\n").is_empty());
    }

    #[test]
    fn libraries_ask_for_missing_documentation() {
        assert_eq!(rules("xla-hlo/src/lib.rs", "//! F.\npub mod a;\n"), [(1, "public-docs")]);
        assert!(rules("xla-hlo/src/lib.rs", "//! F.\n#![warn(missing_docs)]\npub mod a;\n").is_empty());
        assert!(rules("xla-hlo/src/a.rs", "//! F.\npub mod b;\n").is_empty());
    }

    #[test]
    fn long_files_are_found_unless_they_are_tables() {
        assert_eq!(file_size("a.rs", 600), None);
        assert!(file_size("a.rs", 601).is_some());
        let long = format!("//! Long.\n{}", "x();\n".repeat(1600));
        assert_eq!(rules("a/src/ops.rs", &long), [(0, "size")]);
        assert!(rules("a/src/op_table.rs", &long).is_empty());
        assert!(!exempt_from_size("a/src/stable.rs"));
    }

    #[test]
    fn long_functions_are_found_where_they_begin() {
        let body = "    let x = [0; 3];\n    if a { b(\"}\") }\n".repeat(60);
        let source =
            format!("//! F.\nfn short(); // fn\npub fn long(\n    a: [u8; 4],\n) {{\n{body}}}\nfn next() {{}}\n");
        assert_eq!(rules("a/src/lib.rs", &source), [(3, "size")]);
        let arms = "        A => 1,\n".repeat(100);
        assert!(
            rules("a/src/lib.rs", &format!("//! F.\nfn table() {{\n    match a {{\n{arms}    }}\n}}\n")).is_empty()
        );
    }

    #[test]
    fn long_lines_are_found_but_for_their_strings() {
        let (comment, text) = ("x".repeat(115), "x".repeat(200));
        let source = format!("//! F.\n//! {comment}x\n//! {comment}xx\nfn f() {{ g(\"{text}\") }}\n");
        assert_eq!(rules("a/src/lib.rs", &source), [(3, "size")]);
    }
}
