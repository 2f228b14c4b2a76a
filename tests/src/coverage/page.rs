//! HTML page with the tables of the coverage.

use std::fmt::Write;

use xla_hlo::ElementType;

use super::{Status, Table};

/// Style of the tables.
pub const STYLE: &str = "
body { font: 14px/1.4 sans-serif; margin: 2em; }
table { border-collapse: collapse; margin-bottom: 2em; }
th { font-weight: normal; text-align: left; padding: 1px 6px; }
thead th { writing-mode: vertical-rl; text-align: end; padding: 6px 1px; position: sticky; top: 0; background: white; }
td { width: 1.6em; height: 1.4em; border: 1px solid white; background: #f4f4f4; text-align: center; }
td.native, i.native { background: #3a9d5d; } td.fallback, i.fallback { background: #e3b341; }
td.known, i.known { background: #e58f65; } td.refused, i.refused { background: #d9d2e9; }
td.wrong, i.wrong { background: #cc3311; } td.missing, i.missing { background: #e0e0e0; } i.none { background: #f4f4f4; }
td.device, i.device { background: #b7c9e2; } p span { white-space: nowrap; }
";

/// Returns the legend of the colours.
pub fn legend() -> String {
    let colours = [
        ("native", "native"),
        ("fallback", "the host evaluates it"),
        ("known", "expected failure"),
        ("refused", "refused"),
        ("wrong", "wrong"),
        ("device", "needs another device or a queue to the host, refused by name"),
        ("missing", "missing"),
        ("none", "not in the language"),
    ];
    let entries = colours.map(|(class, text)| format!("<span><i class=\"{class}\">&emsp;</i> {text}</span>"));
    format!("<p>{}</p>\n", entries.join(" &ensp; "))
}

/// Returns the tables as a page; cells have tooltips with details.
pub fn page(tables: &[Table]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Operations and element types</title>\
         <style>{STYLE}</style></head><body><h1>Operations and element types</h1>\n{}",
        legend()
    );
    for table in tables {
        page += &format!("<h2>{}</h2>{}", escaped(&table.platform), table_html(table));
    }
    page + "</body></html>\n"
}

/// Returns one table.
pub fn table_html(table: &Table) -> String {
    let mut html = "<table><thead><tr><th></th>".to_string();
    for ty in ElementType::ALL {
        // Writing to a string cannot fail.
        let _ = write!(html, "<th>{ty}</th>");
    }
    html += "</tr></thead><tbody>\n";
    for row in &table.rows {
        let _ = write!(html, "<tr><th>{}</th>", row.opcode);
        row.statuses.iter().for_each(|status| html += &cell(status));
        html += "</tr>\n";
    }
    html + "</tbody></table>\n"
}

fn cell(status: &Status) -> String {
    let (class, title) = match status {
        Status::NotAllowed => return "<td></td>".to_string(),
        Status::Native => ("native", ""),
        Status::Fallback => ("fallback", "the host evaluates it"),
        Status::Expected(reason) => ("known", reason.as_str()),
        Status::Refused(why) => ("refused", why.as_str()),
        Status::Wrong(how) => ("wrong", how.as_str()),
        Status::Missing => ("missing", "missing"),
        Status::DeviceOnly => ("device", "needs more than one device and its memory; refused by name when compiling"),
    };
    format!("<td class=\"{class}\" title=\"{}\"></td>", escaped(title))
}

/// Escapes text for HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
