//! The record of a test file: a line of JSON for whatever happened, written at once, so that a run can be taken up.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Passed,
    Failed,
    Skipped,
    /// The process ended within the test.
    Crashed,
    /// The test took longer than its limit.
    TimedOut,
}

impl Kind {
    const NAMES: &[(Kind, &str)] = &[
        (Kind::Passed, "passed"),
        (Kind::Failed, "failed"),
        (Kind::Skipped, "skipped"),
        (Kind::Crashed, "crashed"),
        (Kind::TimedOut, "timed out"),
    ];

    pub fn name(self) -> &'static str {
        Kind::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    pub fn of(name: &str) -> Option<Kind> {
        Kind::NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

/// Outcome of a test.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    pub kind: Kind,
    pub seconds: f64,
    /// Text of the exception, or reason of the skip.
    pub message: String,
    pub trace: String,
}

/// All that is known of a test file.
#[derive(Default, Debug)]
pub struct Record {
    /// Library and environment that were tested.
    pub subject: String,
    /// By the test's name within its file.
    pub outcomes: BTreeMap<String, Outcome>,
    /// Errors that kept the file, or a part of it, from being collected.
    pub uncollected: Vec<String>,
    /// Troubles outside of tests.
    pub notes: Vec<String>,
    /// The test that had begun, and not ended, when the last process wrote its last line.
    pub open: Option<String>,
    /// Exit code that pytest was about to return.
    pub finished: Option<i64>,
    /// Whether nothing is left to be run.
    pub is_complete: bool,
}

impl Record {
    /// Reads a record; an empty one where there is none.
    pub fn read(path: &Path) -> Result<Record> {
        let mut record = Record::default();
        if !path.exists() {
            return Ok(record);
        }
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        for (number, line) in text.lines().enumerate() {
            let line: Value = serde_json::from_str(line).with_context(|| {
                format!("line {} of {} is no JSON: remove the file, and run again", number + 1, path.display())
            })?;
            record.add(&line);
        }
        Ok(record)
    }

    fn add(&mut self, line: &Value) {
        let word = |key: &str| line[key].as_str().map(str::to_owned);
        if let Some(subject) = word("subject") {
            self.subject = subject;
        } else if line.get("process").is_some() {
            (self.open, self.finished) = (None, None);
        } else if let Some(id) = word("start") {
            self.open = Some(id);
        } else if let (Some(id), Some(kind)) = (word("id"), word("outcome").as_deref().and_then(Kind::of)) {
            let text = |key: &str| word(key).unwrap_or_default();
            let seconds = line["seconds"].as_f64().unwrap_or(0.0);
            self.outcomes.insert(id, Outcome { kind, seconds, message: text("message"), trace: text("trace") });
            self.open = None;
        } else if let Some(error) = word("uncollected") {
            self.uncollected.push(error);
        } else if let Some(note) = word("note") {
            self.notes.push(note);
        } else if line.get("complete").is_some() {
            self.is_complete = true;
        } else if let Some(code) = line["finished"].as_i64() {
            self.finished = Some(code);
            self.is_complete |= is_done(code);
        }
    }

    /// Seconds of all tests together.
    pub fn seconds(&self) -> f64 {
        self.outcomes.values().fold(0.0, |sum, outcome| sum + outcome.seconds)
    }

    pub fn count(&self, kind: Kind) -> usize {
        self.outcomes.values().filter(|outcome| outcome.kind == kind).count()
    }

    /// Begins a record anew with the outcomes that are `kept`.
    pub fn restart(&self, path: &Path, subject: &str, kept: impl Fn(&Outcome) -> bool) -> Result<()> {
        let mut text = format!("{}\n", json!({ "subject": subject }));
        for (id, outcome) in self.outcomes.iter().filter(|(_, outcome)| kept(outcome)) {
            text += &format!("{}\n", outcome_line(id, outcome));
        }
        fs::write(path, text).with_context(|| path.display().to_string())
    }
}

/// Whether pytest's exit code says that every test had its turn.
pub fn is_done(code: i64) -> bool {
    // All passed, some failed, there are none.
    matches!(code, 0 | 1 | 5)
}

pub fn outcome_line(id: &str, outcome: &Outcome) -> Value {
    let Outcome { kind, seconds, message, trace } = outcome;
    json!({ "id": id, "outcome": kind.name(), "seconds": seconds, "message": message, "trace": trace })
}

/// Adds a line to a record.
pub fn append(path: &Path, line: &Value) -> Result<()> {
    let open = fs::OpenOptions::new().append(true).create(true).open(path);
    let mut file = open.with_context(|| path.display().to_string())?;
    Ok(file.write_all(format!("{line}\n").as_bytes())?)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A record of lines as the pytest plugin writes them.
    pub fn record(lines: &[Value]) -> Record {
        let mut record = Record::default();
        lines.iter().for_each(|line| record.add(line));
        record
    }

    #[test]
    fn a_test_without_an_outcome_stays_open() {
        let mut lines = vec![
            json!({"subject": "s"}),
            json!({"process": 0}),
            json!({"collected": 3}),
            json!({"start": "T::a"}),
            json!({"id": "T::a", "outcome": "passed", "seconds": 0.5}),
            json!({"start": "T::b"}),
        ];
        let crashed = record(&lines);
        assert_eq!((crashed.open.as_deref(), crashed.is_complete), (Some("T::b"), false));
        // Another process continues after it.
        lines.extend([json!({"process": 1}), json!({"collected": 3}), json!({"finished": 0})]);
        let done = record(&lines);
        assert_eq!((done.open, done.is_complete, done.outcomes.len()), (None, true, 1));
        assert!(!record(&[json!({"uncollected": "ImportError: x"}), json!({"finished": 2})]).is_complete);
    }

    #[test]
    fn names_of_kinds_are_read_back() {
        for (kind, name) in Kind::NAMES {
            assert_eq!((Kind::of(name), kind.name()), (Some(*kind), *name));
        }
    }
}
