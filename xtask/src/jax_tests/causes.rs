//! Groups misses by their cause: the first line of the message, without the numbers and names that differ by test.

use std::collections::BTreeMap;

use super::compare::Miss;

/// Longer causes are cut.
const LONGEST: usize = 200;

/// Misses of one cause.
pub struct Group<'a> {
    pub cause: String,
    /// Each with its test file.
    pub misses: Vec<(&'a str, &'a Miss)>,
}

/// Groups, the largest first.
pub fn group<'a>(misses: impl Iterator<Item = (&'a str, &'a Miss)>) -> Vec<Group<'a>> {
    let mut by_cause: BTreeMap<String, Vec<(&str, &Miss)>> = BTreeMap::new();
    for (file, miss) in misses {
        by_cause.entry(cause(miss)).or_default().push((file, miss));
    }
    let mut groups: Vec<Group<'_>> = by_cause.into_iter().map(|(cause, misses)| Group { cause, misses }).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.misses.len()));
    groups
}

fn cause(miss: &Miss) -> String {
    let line = normalised(&headline(&miss.message));
    if line.is_empty() { miss.what.to_owned() } else { format!("{}: {line}", miss.what) }
}

/// The first line that is not blank, and the next one where the first only announces it.
pub fn headline(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(next) if first.ends_with(':') => format!("{first} {next}"),
        _ => first.to_owned(),
    }
}

/// A line with `N` for lists of numbers, `%..` for names of instructions, `'..'` for quoted names that have numbers.
fn normalised(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        // A digit within a word belongs to its name, as in `f32`; after `_`, `.` or a bracket it is a number.
        let is_in_word = out.ends_with(|c: char| c.is_alphabetic() || (c == '_' && !line.contains(' ')));
        let (taken, text) = match first {
            '0'..='9' if !is_in_word => (number(rest), "N".to_owned()),
            '0'..='9' => {
                let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                (length, rest[..length].to_owned())
            }
            '%' if rest[1..].starts_with(|c: char| c.is_alphabetic()) => (instruction(rest), "%..".to_owned()),
            '\'' | '"' | '`' => quoted(rest, first),
            _ => (first.len_utf8(), first.to_string()),
        };
        out += &text;
        rest = &rest[taken..];
    }
    let mut out = out.replace("-N", "N");
    for list in ["N, N", "N,N", "N N", "NxN"] {
        while out.contains(list) {
            out = out.replace(list, "N");
        }
    }
    out.chars().take(LONGEST).collect()
}

/// Length of the instruction name at the start of a text, including its computation after ` of `.
fn instruction(text: &str) -> usize {
    let name = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c))).unwrap_or(rest.len())
    };
    let end = 1 + name(1);
    if text[end..].starts_with(" of ") { end + 4 + name(end + 4) } else { end }
}

/// Length of the number that a text begins with: an address, or digits with a fraction and an exponent.
fn number(text: &str) -> usize {
    if let Some(hex) = text.strip_prefix("0x") {
        return 2 + hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
    }
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())
    };
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end += 1 + digits(end + 1);
    }
    for exponent in ["e-", "e+", "e"] {
        if text[end..].starts_with(exponent) && digits(end + exponent.len()) > 0 {
            return end + exponent.len() + digits(end + exponent.len());
        }
    }
    end
}

/// A quoted name, or the quotation mark alone where no short name follows.
fn quoted(text: &str, mark: char) -> (usize, String) {
    let Some(end) = text[1..].find(mark).filter(|end| *end <= 80) else {
        return (1, mark.to_string());
    };
    let name = &text[1..=end];
    let is_plain = !name.contains(|c: char| c.is_ascii_digit());
    (end + 2, if is_plain { format!("{mark}{name}{mark}") } else { format!("{mark}..{mark}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_numbered_names_fall_away() {
        let cases = [
            ("shapes (3, 4) and (5,) differ at 0x7f3a", "shapes (N) and (N,) differ at N"),
            ("f32[2,3] is no s64[]", "f32[N] is no s64[]"),
            ("operand %fusion.12 and %add", "operand %.. and %.."),
            ("%call.1 of body_3.5: no handler", "%..: no handler"),
            ("no target 'lapack_sgesdd' but 'call_17'", "no target 'lapack_sgesdd' but '..'"),
            ("rtol=1e-06, atol=0.5 at -3", "rtol=N, atol=N at N"),
            ("it isn't 12% of it", "it isn't N% of it"),
            ("Größe 3 „x“ 2.", "Größe N „x“ N"),
        ];
        for (line, expected) in cases {
            assert_eq!(normalised(line), expected);
        }
        assert_eq!(normalised(&"x".repeat(500)).len(), LONGEST);
    }

    #[test]
    fn misses_of_one_cause_stand_together() {
        let miss = |id: &str, message: &str| Miss {
            id: id.to_owned(),
            what: "failed",
            message: message.to_owned(),
            trace: String::new(),
        };
        let misses = [
            miss("T::a", "ValueError: no"),
            miss("T::b", "AssertionError: \n\nNot equal to tolerance rtol=1e-6\nMismatched elements: 1"),
            miss("T::c", "AssertionError: \nNot equal to tolerance rtol=0.001\nMismatched elements: 7"),
        ];
        let groups = group(misses.iter().map(|miss| ("lax_test", miss)));
        let shown: Vec<_> = groups.iter().map(|group| (group.cause.as_str(), group.misses.len())).collect();
        assert_eq!(
            shown,
            [("failed: AssertionError: Not equal to tolerance rtol=N", 2), ("failed: ValueError: no", 1)]
        );
    }
}
