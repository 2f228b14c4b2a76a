//! Places that a vendor must change: comments `VENDOR(topic): action`, and the item below each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const TAG: &str = "// VENDOR(";

/// One tag.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    topic: String,
    what: String,
    file: String,
    line: usize,
    /// Lines of the item below.
    covered: usize,
}

/// All places of a crate by topic, and their sum.
pub fn report(folder: &Path) -> Result<String> {
    let mut places = Vec::new();
    collect(folder, folder, &mut places)?;
    let mut topics: BTreeMap<&str, Vec<&Place>> = BTreeMap::new();
    places.iter().for_each(|place| topics.entry(&place.topic).or_default().push(place));
    let mut text = String::new();
    for (topic, places) in &topics {
        text += &format!("{topic}\n");
        for Place { what, file, line, covered, .. } in places {
            text += &format!("  {file}:{line}  ({covered} lines)  {what}\n");
        }
    }
    let lines: usize = places.iter().map(|place| place.covered).sum();
    Ok(text + &format!("\n{} places, {lines} lines in all\n", places.len()))
}

fn collect(root: &Path, folder: &Path, places: &mut Vec<Place>) -> Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .collect::<std::io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                collect(root, &path, places)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs" || e == "toml") {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            places.extend(of_text(&text, &file));
        }
    }
    Ok(())
}

fn of_text(text: &str, file: &str) -> Vec<Place> {
    let lines: Vec<&str> = text.lines().collect();
    let place = |(index, line): (usize, &&str)| {
        let (topic, what) = line.trim_start().strip_prefix(TAG)?.split_once("):")?;
        let covered = item(&lines[index + 1..]);
        let (topic, what) = (topic.to_owned(), what.trim().to_owned());
        Some(Place { topic, what, file: file.to_owned(), line: index + 1, covered })
    };
    lines.iter().enumerate().filter_map(place).collect()
}

/// Number of lines of code of the item that begins here; comments and attributes in front of it are not counted.
fn item(lines: &[&str]) -> usize {
    let is_front = |line: &&&str| line.trim_start().starts_with("//") || line.trim_start().starts_with("#[");
    let lines = &lines[lines.iter().take_while(is_front).count()..];
    let Some(first) = lines.first() else { return 0 };
    let indent = first.len() - first.trim_start().len();
    if first.trim_end().ends_with([';', ',']) || first.trim_end().ends_with('}') {
        return 1;
    }
    let is_end =
        |line: &&str| line.len() - line.trim_start().len() == indent && line.trim_start().starts_with(['}', ']', ')']);
    lines.iter().skip(1).position(is_end).map_or(lines.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_ends_where_its_indentation_does() {
        let text = "// VENDOR(name): call it what you like\npub const NAME: &str = \"acme\";\n\n\
            impl X {\n    // VENDOR(memory): ask the driver\n    /// Documented.\n    fn f(&self) {\n        g();\n    }\n}\n";
        let places = of_text(text, "src/x.rs");
        let seen: Vec<_> = places.iter().map(|p| (p.topic.as_str(), p.line, p.covered)).collect();
        assert_eq!(seen, [("name", 1, 1), ("memory", 5, 3)]);
        assert_eq!(places[1].what, "ask the driver");
    }
}
