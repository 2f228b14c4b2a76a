//! The table of a run, and its misses by cause.

use std::fmt::Write;

use super::causes::{Group, headline};
use super::compare::{Comparison, Score, percent};

/// Names of tests that are printed for each cause.
const EXAMPLES: usize = 2;

/// A line for each test file, and the total over the files of the baseline.
pub fn table(files: &[Comparison]) -> String {
    let widest = files.iter().map(|file| file.file.len()).max().unwrap_or(0).max("total".len());
    let columns = ["tests", "P", "passed", "score", "seconds", "XLA:CPU"];
    let [tests, expected, passed, score, seconds, theirs] = columns;
    let mut text = format!(
        "\n{:<widest$}  {tests:>6}  {expected:>6}  {passed:>6}  {score:>7}  {seconds:>8}  {theirs:>8}\n",
        "file"
    );
    let mut total = Total::default();
    for file in files {
        let row = match &file.score {
            Some(score) => {
                total.add(file, score);
                row(file.tests, score.expected, score.passed(), file.seconds, score.seconds)
            }
            None => format!("{:>6}  {:>6}  not in the baseline", file.tests, "-"),
        };
        text += &format!("{:<widest$}  {row}\n", file.file);
    }
    let Total { tests, expected, passed, seconds, theirs } = total;
    text + &format!("{:<widest$}  {}\n", "total", row(tests, expected, passed, seconds, theirs))
}

#[derive(Default)]
struct Total {
    tests: usize,
    expected: usize,
    passed: usize,
    seconds: f64,
    theirs: f64,
}

impl Total {
    fn add(&mut self, file: &Comparison, score: &Score) {
        self.tests += file.tests;
        self.expected += score.expected;
        self.passed += score.passed();
        self.seconds += file.seconds;
        self.theirs += score.seconds;
    }
}

fn row(tests: usize, expected: usize, passed: usize, seconds: f64, theirs: f64) -> String {
    let percent = percent(passed, expected);
    format!("{tests:>6}  {expected:>6}  {passed:>6}  {percent:>7}  {seconds:>8.1}  {theirs:>8.1}")
}

/// A line for each trouble outside of tests.
pub fn notes(files: &[Comparison]) -> String {
    let lines = files.iter().flat_map(|file| file.notes.iter().map(|note| format!("{}: {note}\n", file.file)));
    lines.collect()
}

/// A paragraph for each cause, with some of its tests.
pub fn causes(groups: &[Group<'_>]) -> String {
    let mut text = String::new();
    for group in groups {
        let _ = writeln!(text, "{:>5}  {}", group.misses.len(), group.cause);
        for (file, miss) in group.misses.iter().take(EXAMPLES) {
            let _ = writeln!(text, "         {file}.py::{}", miss.id);
        }
    }
    text
}

/// Misses by cause, with their messages; the first of each cause with its traceback, if any.
pub fn misses(groups: &[Group<'_>]) -> String {
    let mut text = String::new();
    for group in groups {
        let _ = writeln!(text, "== {} x {}", group.misses.len(), group.cause);
        for (file, miss) in &group.misses {
            let _ = writeln!(text, "{file}.py::{}\n    {}", miss.id, headline(&miss.message));
        }
        if let Some((_, miss)) = group.misses.first() {
            let _ = writeln!(text, "-- the first of them\n{}\n{}\n", miss.message, miss.trace);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::causes::group;
    use super::super::compare::Miss;
    use super::*;

    fn files() -> Vec<Comparison> {
        let miss = |id: &str| Miss {
            id: id.to_owned(),
            what: "failed",
            message: "ValueError: 7\nmore".to_owned(),
            trace: "a_test.py:1: in test".to_owned(),
        };
        let score = Score { expected: 400, misses: vec![miss("T::a"), miss("T::b"), miss("T::c")], seconds: 10.0 };
        let one = Comparison {
            file: "lax_test".to_owned(),
            tests: 500,
            seconds: 12.0,
            score: Some(score),
            notes: vec!["after the last test: signal: 11".to_owned()],
        };
        let other = Comparison { file: "new_test".to_owned(), tests: 5, seconds: 1.0, score: None, notes: Vec::new() };
        vec![one, other]
    }

    #[test]
    fn the_table_counts_what_the_baseline_has() {
        let expected = "
file       tests       P  passed    score   seconds   XLA:CPU
lax_test     500     400     397   99.25%      12.0      10.0
new_test       5       -  not in the baseline
total        500     400     397   99.25%      12.0      10.0
";
        assert_eq!(table(&files()), expected);
        assert_eq!(notes(&files()), "lax_test: after the last test: signal: 11\n");
    }

    #[test]
    fn causes_are_short_and_the_list_is_whole() {
        let files = files();
        let score = files[0].score.as_ref().unwrap();
        let groups = group(score.misses.iter().map(|miss| ("lax_test", miss)));
        let short = causes(&groups);
        assert!(short.starts_with("    3  failed: ValueError: N\n         lax_test.py::T::a\n"), "{short}");
        assert!(!short.contains("T::c"));
        let list = misses(&groups);
        assert!(list.contains("lax_test.py::T::c\n    ValueError: 7\n"), "{list}");
        assert!(list.contains("-- the first of them\nValueError: 7\nmore\na_test.py:1: in test\n"), "{list}");
    }
}
