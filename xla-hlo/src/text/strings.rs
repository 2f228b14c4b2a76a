//! Quoted strings and JSON dictionaries.

use super::lexer::string_end;

/// Returns the text between the quotes of `quoted` with C escapes resolved, or an error message.
pub(super) fn unescape(quoted: &str) -> Result<String, String> {
    String::from_utf8(unescape_bytes(quoted)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("the string must be text, but is not UTF-8 at byte {at}; only backend_config takes other bytes")
    })
}

/// Returns the bytes between the quotes of `quoted` with C escapes resolved, or an error message.
pub(super) fn unescape_bytes(quoted: &str) -> Result<Vec<u8>, String> {
    let inner = &quoted[1..quoted.len() - 1];
    if !inner.contains('\\') {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte == b'\\' { rest = unescape_one(rest, &mut out)? } else { out.push(*byte) }
    }
    Ok(out)
}

/// Resolves the escape after a backslash; returns the bytes that follow it.
fn unescape_one<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], String> {
    let Some((&code, tail)) = rest.split_first() else { return Err("the string ends with a single `\\`".to_string()) };
    let plain = match code {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'v' => 0x0b,
        b'\\' | b'"' | b'\'' | b'?' => code,
        b'0'..=b'7' => {
            let (value, tail) = digits(rest, 8, 3);
            out.push(u8::try_from(value).map_err(|_| format!("the escape \\{value:o} is more than a byte"))?);
            return Ok(tail);
        }
        b'x' | b'X' => {
            let (value, after) = digits(tail, 16, 2);
            if after.len() == tail.len() {
                return Err("the escape \\x needs hexadecimal digits".to_string());
            }
            out.push(value as u8);
            return Ok(after);
        }
        b'u' | b'U' => {
            let length = if code == b'u' { 4 } else { 8 };
            let (value, after) = digits(tail, 16, length);
            let c = char::from_u32(value).filter(|_| tail.len() - after.len() == length);
            let c = c.ok_or_else(|| format!("the escape \\{} needs {length} digits of a character", code as char))?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(after);
        }
        other => return Err(format!("the escape \\{} is unknown", char::from(other).escape_default())),
    };
    out.push(plain);
    Ok(tail)
}

/// Parses at most `most` digits of that radix; returns the value and the bytes that follow.
fn digits(bytes: &[u8], radix: u32, most: usize) -> (u32, &[u8]) {
    let mut value = 0u32;
    let mut at = 0;
    while let Some(d) = bytes.get(at).filter(|_| at < most).and_then(|b| char::from(*b).to_digit(radix)) {
        value = value.wrapping_mul(radix).wrapping_add(d);
        at += 1;
    }
    (value, &bytes[at..])
}

/// Appends text in double quotes, with C escapes for all characters but printable ASCII.
pub(super) fn push_quoted(out: &mut String, text: &str) {
    push_quoted_bytes(out, text.as_bytes());
}

/// Appends bytes in double quotes, with C escapes for all but printable ASCII.
fn push_quoted_bytes(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            0x20..0x7f => out.push(char::from(byte)),
            _ => {
                out.push('\\');
                for shift in [6, 3, 0] {
                    out.push(char::from(b'0' + ((byte >> shift) & 7)));
                }
            }
        }
    }
    out.push('"');
}

/// Returns `text` in double quotes, with C escapes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::new();
    push_quoted(&mut out, text);
    out
}

/// Appends a JSON dictionary unchanged, and all other bytes in quotes.
pub(super) fn push_json_or_quoted(out: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) if dictionary_end(bytes, 0) == Some(bytes.len()) => out.push_str(text),
        _ => push_quoted_bytes(out, bytes),
    }
}

/// Returns the end of the dictionary whose `{` is at `start`: the offset after the matching `}`. Braces in strings are
/// ignored.
pub(super) fn dictionary_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start) != Some(&b'{') {
        return None;
    }
    let mut depth = 0usize;
    let mut at = start;
    loop {
        match *bytes.get(at)? {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b'"' => {
                at = string_end(bytes, at, b'"')?;
                continue;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}
