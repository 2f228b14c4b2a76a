//! HTML page of a report.

use std::fmt::Write;

use super::{CaseResult, Outcome, Report};
use crate::conformance::case::Level;
use crate::coverage::{STYLE, escaped, legend, table_html};

const OWN_STYLE: &str = "
.passed { color: #3a9d5d; } .failed { color: #cc3311; } .expected { color: #b07d00; } .skipped { color: #777; }
details { margin: .4em 0; } summary { cursor: pointer; } pre { margin: .2em 0 .8em 2em; white-space: pre-wrap; }
table.levels td { width: auto; padding: 1px 10px; text-align: right; background: none; }
";

pub(super) fn page(report: &Report) -> String {
    let name = escaped(&report.platform);
    let verdict = if report.passed() { ("passed", "passes") } else { ("failed", "fails") };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Conformance of {name}</title><style>{STYLE}{OWN_STYLE}\
         </style></head><body><h1>Conformance of {name}: <span class=\"{}\">{}</span></h1>\n",
        verdict.0, verdict.1
    );
    page += &levels(report);
    for complaint in &report.complaints {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "<p class=\"failed\">{}</p>", escaped(complaint));
    }
    for level in Level::ALL {
        page += &cases(report, level);
    }
    page += &next(report);
    if let Some(table) = &report.matrix {
        page += &format!("<h2>Operations and element types</h2>{}{}", legend(), table_html(table));
    }
    page + "</body></html>\n"
}

fn levels(report: &Report) -> String {
    let mut html = "<table class=\"levels\"><tr><th>level</th><th></th><th>passed</th><th>expected failures</th>\
                    <th>skipped</th><th>failed</th><th>seconds</th></tr>\n"
        .to_string();
    for level in Level::ALL {
        let results: Vec<&CaseResult> = report.results.iter().filter(|result| result.level == level).collect();
        if results.is_empty() {
            continue;
        }
        let count = |class: &str| results.iter().filter(|result| class_of(&result.outcome) == class).count();
        let seconds: f64 = results.iter().map(|result| result.seconds).sum();
        let _ = writeln!(
            html,
            "<tr><th>{}</th><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{seconds:.1}</td></tr>",
            level.number(),
            level.title(),
            count("passed"),
            count("expected"),
            count("skipped"),
            count("failed"),
        );
    }
    html + "</table>\n"
}

fn class_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed(_) | Outcome::Lost(_) | Outcome::Hung(_) | Outcome::BeginsToPass(_) => "failed",
        Outcome::Expected { .. } => "expected",
        Outcome::Skipped(_) => "skipped",
    }
}

/// Returns the cases of a level that did not pass, each with its message in a collapsed section.
fn cases(report: &Report, level: Level) -> String {
    let of_level = report.results.iter().filter(|result| result.level == level);
    let told: Vec<&CaseResult> = of_level.filter(|result| result.outcome != Outcome::Passed).collect();
    if told.is_empty() {
        return String::new();
    }
    let mut html = format!("<h2>Level {}: {}</h2>\n", level.number(), level.title());
    for result in told {
        let message = match &result.outcome {
            Outcome::Passed => String::new(),
            Outcome::Failed(message) | Outcome::Lost(message) | Outcome::Hung(message) => message.clone(),
            Outcome::Expected { message, reason } => format!("{reason}\n{message}"),
            Outcome::BeginsToPass(_) => result.outcome.failure().unwrap_or_default(),
            Outcome::Skipped(why) => why.clone(),
        };
        let (class, id) = (class_of(&result.outcome), escaped(&result.id));
        let _ = writeln!(
            html,
            "<details><summary class=\"{class}\">{id}</summary><pre>{}</pre></details>",
            escaped(&message)
        );
    }
    html
}

fn next(report: &Report) -> String {
    if report.lowering.is_empty() {
        return String::new();
    }
    let mut html =
        "<h2>Worth lowering next</h2><table class=\"levels\"><tr><th>operation</th><th>programs of the corpus</th>\
                    <th>instructions by the host</th></tr>\n"
            .to_string();
    for lowering in &report.lowering {
        let super::Lowering { operation, programs, instructions } = lowering;
        let _ = writeln!(html, "<tr><th>{}</th><td>{programs}</td><td>{instructions}</td></tr>", escaped(operation));
    }
    html + "</table>\n"
}
