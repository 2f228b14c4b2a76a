//! Verdict of a corpus run: a table, the failures, and exceptions that are none any more.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

/// One case on one platform.
pub struct Outcome {
    pub suite: String,
    pub name: String,
    pub opcodes: Vec<String>,
    /// Failure on one line; `None` when the case passed.
    pub problem: Option<String>,
}

/// Counts of a suite on a platform.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    excepted: usize,
}

/// The outcomes of a run, sorted into right, wrong and excepted ones.
pub struct Verdict {
    not_yet: Vec<String>,
    counts: BTreeMap<(String, String), Counts>,
    failures: Vec<String>,
    exceptions: BTreeMap<(String, String), Vec<String>>,
    seen: BTreeSet<String>,
    needed: BTreeSet<String>,
}

impl Verdict {
    /// Nothing yet; cases that use one of the opcodes of `not_yet` may fail.
    pub fn new(not_yet: Vec<String>) -> Verdict {
        Verdict {
            not_yet,
            counts: BTreeMap::new(),
            failures: Vec::new(),
            exceptions: BTreeMap::new(),
            seen: BTreeSet::new(),
            needed: BTreeSet::new(),
        }
    }

    /// Adds the outcomes of a platform.
    pub fn add(&mut self, platform: &str, outcomes: Vec<Outcome>) {
        for Outcome { suite, name, opcodes, problem } in outcomes {
            let waits: Vec<String> = opcodes.into_iter().filter(|opcode| self.not_yet.contains(opcode)).collect();
            self.seen.extend(waits.iter().cloned());
            let counts = self.counts.entry((platform.to_owned(), suite.clone())).or_default();
            let Some(problem) = problem else {
                counts.passed += 1;
                continue;
            };
            if waits.is_empty() {
                counts.failed += 1;
                self.failures.push(format!("{platform} {suite}/{name}: {problem}"));
            } else {
                counts.excepted += 1;
                let case = (platform.to_owned(), waits.join(", "));
                self.exceptions.entry(case).or_default().push(format!("{suite}/{name}"));
                self.needed.extend(waits);
            }
        }
    }

    /// Prints the table and the cases that need attention; fails when a case failed or, if the run was `complete`, when
    /// an exception is out of date.
    pub fn report(&self, complete: bool) -> Result<()> {
        print!("{}", self.table());
        let total = |count: fn(&Counts) -> usize| self.counts.values().map(count).sum::<usize>();
        let (passed, failed) = (total(|c| c.passed), total(|c| c.failed));
        println!("\ncorpus: {passed} passed, {failed} failed, {} skipped", total(|c| c.excepted));
        let outdated: Vec<_> = self.seen.difference(&self.needed).cloned().collect();
        if failed > 0 {
            bail!("{failed} cases of the corpus failed");
        }
        if passed == 0 {
            bail!("no case of the corpus passed");
        }
        if complete && !outdated.is_empty() {
            bail!("every case with {} passes: take it out of tests/corpus/not-yet.txt", outdated.join(", "));
        }
        Ok(())
    }

    fn table(&self) -> String {
        let mut text = format!("\n{:<13}{:<16}{:>7}{:>8}{:>10}\n", "platform", "suite", "passed", "failed", "excepted");
        for ((platform, suite), counts) in &self.counts {
            let Counts { passed, failed, excepted } = counts;
            text += &format!("{platform:<13}{suite:<16}{passed:>7}{failed:>8}{excepted:>10}\n");
        }
        for ((platform, waits), cases) in &self.exceptions {
            text += &format!("excepted on {platform} for {waits}: {}\n", cases.join(" "));
        }
        for failure in &self.failures {
            text += &format!("FAILED {failure}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, opcodes: &[&str], problem: Option<&str>) -> Outcome {
        let opcodes = opcodes.iter().map(ToString::to_string).collect();
        Outcome { suite: "s".to_owned(), name: name.to_owned(), opcodes, problem: problem.map(str::to_owned) }
    }

    fn verdict(outcomes: Vec<Outcome>) -> Verdict {
        let mut verdict = Verdict::new(vec!["fft".to_owned(), "sort".to_owned()]);
        verdict.add("cpu", outcomes);
        verdict
    }

    #[test]
    fn failures_count_unless_excepted() {
        let excepted = verdict(vec![outcome("a", &["add"], None), outcome("b", &["fft"], Some("no fft"))]);
        assert!(excepted.table().contains("excepted on cpu for fft: s/b"), "{}", excepted.table());
        excepted.report(true).unwrap();
        let failed = verdict(vec![outcome("a", &["add"], Some("differs"))]);
        assert!(failed.table().contains("FAILED cpu s/a: differs"), "{}", failed.table());
        assert!(failed.report(true).unwrap_err().to_string().contains("1 cases"));
    }

    #[test]
    fn an_exception_without_need_is_an_error() {
        let run = verdict(vec![outcome("a", &["sort"], None), outcome("b", &["sort"], None)]);
        run.report(false).unwrap();
        assert!(run.report(true).unwrap_err().to_string().contains("every case with sort passes"));
        let half = verdict(vec![outcome("a", &["sort"], None), outcome("b", &["sort"], Some("no"))]);
        half.report(true).unwrap();
    }

    #[test]
    fn a_run_without_cases_is_an_error() {
        assert!(verdict(Vec::new()).report(true).is_err());
    }
}
