//! The tables as one page of HTML that needs nothing else.

use std::fmt::Write;

use xla_hlo::ElementType;

use super::{Status, Table};

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Operations and element types</title><style>
body { font: 14px/1.4 sans-serif; margin: 2em; }
table { border-collapse: collapse; margin-bottom: 2em; }
th { font-weight: normal; text-align: left; padding: 1px 6px; }
thead th { writing-mode: vertical-rl; vertical-align: bottom; padding: 6px 1px; position: sticky; top: 0; background: white; }
td { width: 1.6em; height: 1.4em; border: 1px solid white; background: #f4f4f4; text-align: center; }
.native { background: #3a9d5d; } .fallback { background: #e3b341; } .refused { background: #d9d2e9; }
.wrong { background: #cc3311; color: white; } .missing { background: #e0e0e0; } .device { background: #b7c9e2; }
</style></head><body><h1>Operations and element types</h1>
<p><span class=\"native\">&emsp;</span> native &ensp; <span class=\"fallback\">&emsp;</span> the host evaluates it &ensp;
<span class=\"refused\">&emsp;</span> refused &ensp; <span class=\"wrong\">&emsp;</span> wrong &ensp;
<span class=\"device\">&emsp;</span> needs another device or a queue to the host, refused by name &ensp;
<span class=\"missing\">&emsp;</span> missing &ensp; <span style=\"background:#f4f4f4\">&emsp;</span> not in the language</p>
";

/// The tables as a page; a cell says more when pointed at.
pub fn page(tables: &[Table]) -> String {
    let mut page = HEAD.to_string();
    for table in tables {
        // Writing to a string cannot fail.
        let _ = write!(page, "<h2>{}</h2><table><thead><tr><th></th>", escaped(&table.platform));
        for ty in ElementType::ALL {
            let _ = write!(page, "<th>{ty}</th>");
        }
        page += "</tr></thead><tbody>\n";
        for row in &table.rows {
            let _ = write!(page, "<tr><th>{}</th>", row.opcode);
            row.statuses.iter().for_each(|status| page += &cell(status));
            page += "</tr>\n";
        }
        page += "</tbody></table>\n";
    }
    page + "</body></html>\n"
}

fn cell(status: &Status) -> String {
    let (class, title) = match status {
        Status::NotAllowed => return "<td></td>".to_string(),
        Status::Native => ("native", ""),
        Status::Fallback => ("fallback", "the host evaluates it"),
        Status::Refused(why) => ("refused", why.as_str()),
        Status::Wrong(how) => ("wrong", how.as_str()),
        Status::Missing => ("missing", "missing"),
        Status::DeviceOnly => ("device", "needs more than one device and its memory; refused by name when compiling"),
    };
    format!("<td class=\"{class}\" title=\"{}\"></td>", escaped(title))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
