//! Outcomes of a test file as JUnit XML, which CI systems show.

use std::fmt::Write;

use super::record::{Kind, Record};

pub fn xml(file: &str, record: &Record) -> String {
    let failures = record.count(Kind::Failed);
    let errors = record.count(Kind::Crashed) + record.count(Kind::TimedOut);
    let (tests, skipped) = (record.outcomes.len(), record.count(Kind::Skipped));
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" \
         time=\"{:.3}\">",
        escaped(file),
        record.seconds()
    );
    for (id, outcome) in &record.outcomes {
        let (class, name) = id.split_once("::").unwrap_or(("", id));
        let (class, name) = (escaped(class), escaped(name));
        let _ = write!(text, "<testcase classname=\"{class}\" name=\"{name}\" time=\"{:.3}\"", outcome.seconds);
        let element = match outcome.kind {
            Kind::Passed => {
                text += "/>\n";
                continue;
            }
            Kind::Skipped => "skipped",
            Kind::Failed => "failure",
            Kind::Crashed | Kind::TimedOut => "error",
        };
        let (message, trace) = (escaped(&outcome.message), escaped(&outcome.trace));
        let _ = writeln!(text, "><{element} message=\"{message}\">{trace}</{element}></testcase>");
    }
    text + "</testsuite>\n"
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' => out += "&#10;",
            // XML has no other control characters.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use serde_json::json;

    #[test]
    fn each_outcome_has_its_element() {
        let record = record(&[
            json!({"id": "T::a", "outcome": "passed", "seconds": 0.5}),
            json!({"id": "T::b", "outcome": "failed", "message": "1 < \"2\"\n\u{1b}", "trace": "a & b"}),
            json!({"id": "T::c", "outcome": "skipped", "message": "no"}),
            json!({"id": "T::d", "outcome": "timed out", "message": "late"}),
        ]);
        let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?>
<testsuite name=\"x_test\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"0.500\">
<testcase classname=\"T\" name=\"a\" time=\"0.500\"/>
<testcase classname=\"T\" name=\"b\" time=\"0.000\"><failure message=\"1 &lt; &quot;2&quot;&#10;\u{fffd}\">a &amp; b</failure></testcase>
<testcase classname=\"T\" name=\"c\" time=\"0.000\"><skipped message=\"no\"></skipped></testcase>
<testcase classname=\"T\" name=\"d\" time=\"0.000\"><error message=\"late\"></error></testcase>
</testsuite>
";
        assert_eq!(xml("x_test", &record), expected);
    }
}
