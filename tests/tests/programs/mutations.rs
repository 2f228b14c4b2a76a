//! Mutated programs of the corpus are refused with a location, or are valid: nothing panics, and every program that
//! passes the verifier compiles or is reported as unsupported.
//!
//! `XLA_TESTS_MUTATIONS=100` sets the number of mutations of each program.
#![expect(clippy::print_stdout, reason = "a test says how many cases it ran")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use xla::{Client, CompileOptions, Error, VerifiedModule};
use xla_hlo::text::parse_module;
use xla_tests::corpus;
use xla_tests::generate::Random;

/// Number of mutations of each program.
const MUTATIONS: usize = 12;
/// Distance of the programs that are mutated: every third one.
const STRIDE: usize = 3;
/// Maximum length of a program; longer ones take too long.
const LONGEST: usize = 20_000;

/// Mutates a text: characters, words or lines are deleted, duplicated or swapped, numbers and words replaced.
fn mutated(text: &str, random: &mut Random) -> String {
    let words: Vec<(usize, usize)> = words(text);
    let (a, b) = words[random.below(words.len())];
    let end = (b + random.below(60)).min(text.len());
    let end = (end..=text.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len());
    let with = |new: &str| format!("{}{new}{}", &text[..a], &text[b..]);
    match random.below(14) {
        0 => text[..a].to_string(),
        1 => format!("{}{}", &text[..a], &text[end..]),
        2 => format!("{}{}", &text[..end], &text[a..]),
        3 => with(
            random.pick(&["{", "}", "(", ")", "[", "]", ",", "=", "->", "\"", "%", "\0", "\u{e9}", "/*", "//", "\n"]),
        ),
        4 => with(random.pick(&["0", "1", "-1", "2", "3", "7", "1000000", "18446744073709551616", "nan", "1e400"])),
        5 => with(random.pick(&["f32", "s4", "pred", "c128", "token", "f8e8m0fnu", "u1", "add", "reduce", "while"])),
        6 => with(""),
        // Another word of the same kind, which is often valid.
        _ => {
            let same: Vec<&str> =
                words.iter().map(|w| &text[w.0..w.1]).filter(|w| kind(w) == kind(&text[a..b])).collect();
            with(random.pick(&same))
        }
    }
}

/// Returns the kind of a word by its first character; names, numbers and words are replaced by words of their kind.
fn kind(word: &str) -> char {
    match word.chars().next() {
        Some(c) if c.is_ascii_digit() || c == '-' => '0',
        Some(c) if c.is_alphabetic() => 'a',
        other => other.unwrap_or(' '),
    }
}

/// Returns the ranges of words, numbers and punctuation.
fn words(text: &str) -> Vec<(usize, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || "%._-".contains(c);
    let mut words: Vec<(usize, usize)> = Vec::new();
    let mut in_word = false;
    for (i, c) in text.char_indices() {
        match words.last_mut() {
            Some(last) if in_word && is_word(c) => last.1 = i + c.len_utf8(),
            _ if c.is_whitespace() => {}
            _ => words.push((i, i + c.len_utf8())),
        }
        in_word = is_word(c);
    }
    words
}

/// Returns the error in the treatment of a text, if any.
fn complaint(client: &Client, text: &str) -> Option<String> {
    let read = || parse_module(text).and_then(VerifiedModule::new);
    let module = match catch_unwind(AssertUnwindSafe(read)) {
        Err(_) => return Some("the parser or the verifier panics".to_string()),
        Ok(Err(error)) => {
            let message = error.to_string();
            return (message.len() > 20_000).then(|| format!("an error of {} bytes", message.len()));
        }
        Ok(Ok(module)) => module,
    };
    match client.compile(&module, &CompileOptions::default()) {
        Err(Error::Internal(detail)) => Some(format!("{detail:?}")),
        Ok(_) | Err(_) => None,
    }
}

#[test]
fn changed_programs_are_refused_or_compiled() {
    let changes = std::env::var("XLA_TESTS_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(MUTATIONS);
    let client = Client::new(&xla::registry(), "cpu").unwrap();
    let cases = corpus::suites().unwrap().into_iter().flat_map(|suite| corpus::suite(&suite).unwrap());
    let mut complaints = Vec::new();
    let (mut tried, mut valid) = (0, 0);
    for (number, case) in cases.enumerate().filter(|(n, case)| n % STRIDE == 0 && case.module.len() < LONGEST) {
        for change in 0..changes {
            let mut random = Random::new((number * 1_000_003 + change) as u64);
            let text = mutated(&case.module, &mut random);
            tried += 1;
            valid += usize::from(
                catch_unwind(|| parse_module(&text).and_then(VerifiedModule::new).is_ok()).unwrap_or(false),
            );
            if let Some(complaint) = complaint(&client, &text) {
                complaints.push(format!("{}/{} change {change}: {complaint}\n{text}", case.suite, case.name));
            }
        }
    }
    println!("{tried} changed programs, {valid} of them programs");
    assert!(valid > tried / 20 && valid < tried);
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
