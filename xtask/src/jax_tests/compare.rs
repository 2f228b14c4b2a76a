//! The score of a test file: of the tests that XLA:CPU passes, the share that we pass.

use super::baseline::Reference;
use super::record::{Kind, Outcome, Record};

/// A test that XLA:CPU passes and we do not.
#[derive(Debug, PartialEq)]
pub struct Miss {
    pub id: String,
    pub what: &'static str,
    pub message: String,
    pub trace: String,
}

/// Outcomes of a test file, compared with XLA:CPU's.
pub struct Comparison {
    pub file: String,
    /// Tests that were run.
    pub tests: usize,
    pub seconds: f64,
    /// Nothing where the baseline lacks the file.
    pub score: Option<Score>,
    pub notes: Vec<String>,
}

pub struct Score {
    /// Tests that XLA:CPU passes, the base of the score.
    pub expected: usize,
    pub misses: Vec<Miss>,
    /// XLA:CPU's seconds.
    pub seconds: f64,
}

impl Score {
    pub fn passed(&self) -> usize {
        self.expected - self.misses.len()
    }
}

impl Comparison {
    pub fn new(file: &str, record: &Record, reference: Option<&Reference>) -> Comparison {
        let score = reference.map(|reference| Score {
            expected: reference.passed().count(),
            misses: reference.passed().filter_map(|id| miss(id, record)).collect(),
            seconds: reference.seconds,
        });
        let mut notes = record.notes.clone();
        notes.extend(record.uncollected.iter().map(|error| format!("not collected: {}", last_line(error))));
        Comparison { file: file.to_owned(), tests: record.outcomes.len(), seconds: record.seconds(), score, notes }
    }
}

/// The miss of a test that XLA:CPU passes; `None` if we pass it, too.
fn miss(id: &str, record: &Record) -> Option<Miss> {
    let (what, message, trace) = match record.outcomes.get(id) {
        Some(Outcome { kind: Kind::Passed, .. }) => return None,
        Some(Outcome { kind, message, trace, .. }) => (kind.name(), message.clone(), trace.clone()),
        None if !record.uncollected.is_empty() => ("not collected", last_line(&record.uncollected[0]), String::new()),
        None => ("not run", String::new(), String::new()),
    };
    Some(Miss { id: id.to_owned(), what, message, trace })
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().to_owned()
}

/// Percent of the tests that XLA:CPU passes, as text; of none there is no share.
pub fn percent(passed: usize, expected: usize) -> String {
    // Rounded down: 100 % is all of them.
    let hundredths = passed.saturating_mul(10_000).checked_div(expected);
    hundredths.map_or("-".to_owned(), |share| format!("{}.{:02}%", share / 100, share % 100))
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use serde_json::json;

    fn reference(passed: &[&str], skipped: &[&str]) -> Reference {
        let of = |ids: &[&str], kind: Kind| ids.iter().map(|id| (id.to_string(), kind)).collect::<Vec<_>>();
        let outcomes = [of(passed, Kind::Passed), of(skipped, Kind::Skipped)].concat().into_iter().collect();
        Reference { subject: String::new(), seconds: 2.0, outcomes }
    }

    #[test]
    fn whatever_is_not_passed_is_a_miss() {
        let record = record(&[
            json!({"id": "T::a", "outcome": "passed", "seconds": 1}),
            json!({"id": "T::b", "outcome": "skipped", "message": "Skipped: not here"}),
            json!({"id": "T::c", "outcome": "failed", "message": "ValueError: 3"}),
            json!({"id": "T::d", "outcome": "crashed", "message": "signal: 11"}),
            json!({"id": "T::x", "outcome": "failed", "message": "XLA:CPU skips it"}),
            json!({"id": "T::new", "outcome": "failed", "message": "XLA:CPU has no such test"}),
        ]);
        let reference = reference(&["T::a", "T::b", "T::c", "T::d", "T::e"], &["T::x"]);
        let compared = Comparison::new("lax_test", &record, Some(&reference));
        let score = compared.score.unwrap();
        assert_eq!((compared.tests, score.expected, score.passed()), (6, 5, 1));
        let misses: Vec<_> = score.misses.iter().map(|miss| (miss.id.as_str(), miss.what)).collect();
        assert_eq!(misses, [("T::b", "skipped"), ("T::c", "failed"), ("T::d", "crashed"), ("T::e", "not run")]);
        assert_eq!(percent(score.passed(), score.expected), "20.00%");
    }

    #[test]
    fn a_file_that_does_not_collect_misses_everything() {
        let record = record(&[json!({"uncollected": "x.py:1: in <module>\nImportError: no"}), json!({"finished": 2})]);
        let compared = Comparison::new("lax_test", &record, Some(&reference(&["T::a"], &[])));
        let miss = &compared.score.unwrap().misses[0];
        assert_eq!((miss.what, miss.message.as_str()), ("not collected", "ImportError: no"));
        assert_eq!(compared.notes, ["not collected: ImportError: no"]);
        assert!(Comparison::new("lax_test", &record, None).score.is_none());
        assert_eq!((percent(0, 0), percent(9999, 10_000)), ("-".to_owned(), "99.99%".to_owned()));
        assert_eq!(percent(29_999_999, 30_000_000), "99.99%");
    }
}
