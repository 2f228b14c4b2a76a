//! Splits Rust source into code and comments line by line, as far as the rules need it.

/// One line of a source file.
#[derive(Debug, Default, PartialEq)]
pub struct Line {
    /// The line without comments, and with the contents of strings and characters left out.
    pub code: String,
    /// The text of the comments on the line, markers included.
    pub comment: String,
}

/// Token that the scanner is inside of.
enum State {
    Code,
    LineComment,
    /// Block comments nest.
    BlockComment(usize),
    Text,
    /// A raw string, closed by a quote and this many `#`.
    RawText(usize),
}

/// Splits a whole file.
pub fn lines(source: &str) -> Vec<Line> {
    let chars: Vec<char> = source.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        if c == '\n' {
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            lines.push(Line::default());
            at += 1;
            continue;
        }
        let line = lines.last_mut().expect("one line is always there");
        let taken;
        (state, taken) = step(state, &chars[at..], line);
        at += taken;
    }
    lines
}

/// Takes one piece from the front of `rest` into the line; returns the state after it and how many characters it was.
fn step(state: State, rest: &[char], line: &mut Line) -> (State, usize) {
    let next = rest.get(1).copied();
    match (state, rest[0], next) {
        (State::Code, '/', Some('/')) => take_comment(State::LineComment, rest, line),
        (State::Code, '/', Some('*')) => take_comment(State::BlockComment(1), rest, line),
        (State::Code, '"', _) => take_code(State::Text, rest, 1, line),
        (State::Code, '\'', _) => take_code(State::Code, rest, quoted(rest), line),
        (State::Code, 'r', _) if !line.code.ends_with(is_word) || line.code.ends_with(['b', 'c']) => {
            match raw_opening(rest) {
                Some(hashes) => take_code(State::RawText(hashes), rest, hashes + 2, line),
                None => take_code(State::Code, rest, 1, line),
            }
        }
        (State::Code, _, _) => take_code(State::Code, rest, 1, line),
        (State::BlockComment(1), '*', Some('/')) => take_comment(State::Code, rest, line),
        (State::BlockComment(depth), '*', Some('/')) => take_comment(State::BlockComment(depth - 1), rest, line),
        (State::BlockComment(depth), '/', Some('*')) => take_comment(State::BlockComment(depth + 1), rest, line),
        (state @ (State::LineComment | State::BlockComment(_)), c, _) => {
            line.comment.push(c);
            (state, 1)
        }
        // An escaped line end still ends the line.
        (State::Text, '\\', Some('\n')) => (State::Text, 1),
        (State::Text, '\\', _) => (State::Text, 2),
        (State::Text, '"', _) => take_code(State::Code, rest, 1, line),
        (State::Text, _, _) => (State::Text, 1),
        (State::RawText(hashes), '"', _) if rest[1..].iter().take_while(|c| **c == '#').count() >= hashes => {
            take_code(State::Code, rest, hashes + 1, line)
        }
        (State::RawText(hashes), _, _) => (State::RawText(hashes), 1),
    }
}

fn take_comment(state: State, rest: &[char], line: &mut Line) -> (State, usize) {
    line.comment.extend(&rest[..2]);
    (state, 2)
}

fn take_code(state: State, rest: &[char], count: usize, line: &mut Line) -> (State, usize) {
    // A character literal is reduced to its quotes.
    let kept = if rest[0] == '\'' && count > 1 { &['\'', '\''] } else { &rest[..count] };
    line.code.extend(kept);
    (state, count)
}

/// Length of the character literal at the front; 1 when the quote opens a lifetime.
fn quoted(rest: &[char]) -> usize {
    match (rest.get(1), rest.get(2)) {
        (Some('\\'), _) => rest.iter().skip(3).position(|c| *c == '\'').map_or(1, |at| at + 4),
        (Some(c), Some('\'')) if *c != '\'' => 3,
        _ => 1,
    }
}

/// The number of `#` when a raw string opens at the front.
fn raw_opening(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    (rest.get(1 + hashes) == Some(&'"')).then_some(hashes)
}

/// Whether a character can be part of an identifier.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `code` has `word` standing alone, not as part of a longer identifier.
pub fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let after = &code[at + word.len()..];
        let continues = word.ends_with(is_word) && after.starts_with(is_word);
        !continues && !code[..at].ends_with(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> Vec<String> {
        lines(source).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn comments_and_code_are_told_apart() {
        let lines = lines("let a = 1; // todo!()\n/* one /* two */ still */ b");
        assert_eq!((lines[0].code.as_str(), lines[0].comment.as_str()), ("let a = 1; ", "// todo!()"));
        assert_eq!(lines[1].code, " b");
        assert_eq!(lines[1].comment, "/* one /* two */ still */");
    }

    #[test]
    fn contents_of_strings_are_left_out() {
        assert_eq!(code(r#"f("a \" // b", 'x', '\'', "\\")"#), [r#"f("", '', '', "")"#]);
        assert_eq!(code("r#\"one \" two\"# br\"x\" var\"y\""), ["r#\"\"# br\"\" var\"\""]);
        assert_eq!(code("\"one\n  // two \\\n \" three"), ["\"", "", "\" three"]);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        assert_eq!(code("fn f<'a>(x: &'a str) -> &'a str { \"//\" }"), ["fn f<'a>(x: &'a str) -> &'a str { \"\" }"]);
        assert_eq!(code("'\\u{1F600}'; b'\\n'"), ["''; b''"]);
    }

    #[test]
    fn words_stand_alone() {
        assert!(has_word("x = unsafe {", "unsafe") && !has_word("unsafe_code", "unsafe"));
        assert!(has_word("core::todo!()", "todo!") && !has_word("my_todo!()", "todo!"));
    }
}
