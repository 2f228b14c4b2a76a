//! Text report for a terminal.

use std::fmt::Write;

use xla_hlo::ElementType;

use super::{CaseResult, Outcome, Report};
use crate::conformance::case::Level;
use crate::coverage::{Status, Table};

/// Maximum number of failures of a level that are printed in full.
const TOLD: usize = 25;
/// Maximum number of lines of a failure's message.
const LINES: usize = 6;
/// Maximum number of operations that are listed as the next ones to lower.
const NEXT: usize = 8;

pub(super) fn text(report: &Report) -> String {
    let mut text = format!("conformance of {}\n\n", report.platform);
    for level in Level::ALL {
        let results: Vec<&CaseResult> = report.results.iter().filter(|result| result.level == level).collect();
        if !results.is_empty() {
            text += &format!("level {} {}\n", level.number(), summary(level, &results));
        }
    }
    for level in Level::ALL {
        let failures = report.results.iter().filter(|result| result.level == level);
        let failures: Vec<(&str, String)> =
            failures.filter_map(|result| Some((result.id.as_str(), result.outcome.failure()?))).collect();
        for (id, message) in failures.iter().take(TOLD) {
            text += &format!("\nFAILED {id}\n{}", indented(message));
        }
        if failures.len() > TOLD {
            text += &format!("\n... and {} more of level {}\n", failures.len() - TOLD, level.number());
        }
    }
    for result in &report.results {
        if let Outcome::Skipped(why) = &result.outcome {
            text += &format!("\nskipped {}: {why}", result.id);
        }
    }
    for complaint in &report.complaints {
        text += &format!("\nFAILED {complaint}\n");
    }
    if let Some(table) = &report.matrix {
        text += &matrix(table);
    }
    text += &next(report);
    let verdict = if report.passed() { "passes" } else { "FAILS" };
    let (cases, seconds) = (report.results.len(), report.seconds);
    text + &format!("\n{} {verdict}: {cases} cases in {seconds:.0} s{}\n", report.platform, casualties(report))
}

/// Returns the numbers of cases that lost the device or hung, if there are any.
fn casualties(report: &Report) -> String {
    let count = |is: fn(&Outcome) -> bool| report.results.iter().filter(|result| is(&result.outcome)).count();
    match (count(|outcome| matches!(outcome, Outcome::Lost(_))), count(|outcome| matches!(outcome, Outcome::Hung(_)))) {
        (0, 0) => String::new(),
        (lost, hung) => format!("; {lost} lost the device or died, {hung} did not end"),
    }
}

fn summary(level: Level, results: &[&CaseResult]) -> String {
    let count = |is: fn(&Outcome) -> bool| results.iter().filter(|result| is(&result.outcome)).count();
    let failed = results.iter().filter(|result| result.outcome.failure().is_some()).count();
    let seconds: f64 = results.iter().map(|result| result.seconds).sum();
    format!(
        "{:42} {:5} passed {:4} expected failures {:4} skipped {:4} failed {seconds:7.1} s",
        level.title(),
        count(|outcome| *outcome == Outcome::Passed),
        count(|outcome| matches!(outcome, Outcome::Expected { .. })),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        failed,
    )
}

fn indented(message: &str) -> String {
    let mut lines: Vec<&str> = message.lines().collect();
    let more = lines.len() > LINES;
    lines.truncate(LINES);
    let end = if more { "    ...\n" } else { "" };
    lines.iter().map(|line| format!("    {line}\n")).collect::<String>() + end
}

/// Returns the matrix with a character for each cell, and the number of cells of each kind.
fn matrix(table: &Table) -> String {
    let mut text =
        "\n# native, h host, x expected failure, d needs another device, - refused, ! wrong, ? missing, blank: not in the language\n\n"
            .to_string();
    let names: Vec<&str> = ElementType::ALL.iter().map(|ty| ty.name()).collect();
    let tallest = names.iter().map(|name| name.len()).max().unwrap_or(0);
    for line in 0..tallest {
        let letters = names.iter().map(|name| name.chars().nth(line).unwrap_or(' '));
        let line = format!("{:26}{}", "", letters.map(|c| format!("{c} ")).collect::<String>());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for row in &table.rows {
        let marks: String = row.statuses.iter().map(|status| format!("{} ", mark(status))).collect();
        if !marks.trim().is_empty() {
            let _ = writeln!(text, "{:26}{}", row.opcode.name(), marks.trim_end());
        }
    }
    let count = |is: fn(&Status) -> bool| table.cells().filter(|(.., status)| is(status)).count();
    let _ = writeln!(
        text,
        "\n{} native, {} by the host, {} expected failures, {} refused, {} wrong, {} missing",
        count(|s| matches!(s, Status::Native)),
        count(|s| matches!(s, Status::Fallback)),
        count(|s| matches!(s, Status::Expected(_))),
        count(|s| matches!(s, Status::Refused(_))),
        count(|s| matches!(s, Status::Wrong(_))),
        count(|s| matches!(s, Status::Missing)),
    );
    text
}

fn mark(status: &Status) -> char {
    match status {
        Status::NotAllowed => ' ',
        Status::Native => '#',
        Status::Fallback => 'h',
        Status::Expected(_) => 'x',
        Status::Refused(_) => '-',
        Status::Wrong(_) => '!',
        Status::Missing => '?',
        Status::DeviceOnly => 'd',
    }
}

fn next(report: &Report) -> String {
    let Some(first) = report.lowering.first() else { return String::new() };
    let mut text = format!("\nthe next operation worth lowering: {}\n", first.operation);
    for lowering in report.lowering.iter().take(NEXT) {
        let super::Lowering { operation, programs, instructions } = lowering;
        let _ = writeln!(text, "  {operation:28} {programs:4} programs, {instructions:5} instructions by the host");
    }
    text
}
