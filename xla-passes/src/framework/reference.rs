//! Generator of the book's page of all passes, from the registry and the stages.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::registry::{self, Counted, PassInfo};
use super::stages;
use crate::{Pipeline, TargetProfile};

/// Path of the page in the repository.
pub const PATH: &str = "docs/src/internals/pass-reference.md";

/// Introduction of the page.
const HEAD: &str = "# Pass reference

Generated from the registry of passes (`xla-passes/src/framework/pass_table.rs`) by `cargo xtask book`, or by
`xla opt --list-passes=markdown -o docs/src/internals/pass-reference.md`. [Passes](passes.md) describes the framework.

No pass has options of its own. Its choices come from the target profile (`xla-passes/src/framework/profile.rs`), and
its limits are constants in its file. The options of `xla opt` (`--without`, `--until`, `--max-passes`,
`--max-rewrites`, `--bisect`, `--print-after-all`) apply to every pass.

- **XLA name**: name of XLA's pass for the same job, which `xla opt` accepts as an alias.
- **Stages**: stages that run the pass; some stages run it several times. The sections are in the order of the pipeline.
- **Target profile**: fields of the profile that the pass or its stage reads.
- **Statistics**: unit of the rewrites that `xla opt --statistics` prints and `--max-rewrites` limits. Passes that edit
  the module as a whole count no rewrites.
";

/// Returns the page as Markdown: one section per stage, with the passes that run there first.
pub fn page() -> String {
    let mut text = HEAD.to_string();
    let stages = stages();
    let mut seen = Vec::new();
    for stage in &stages {
        let new: Vec<&PassInfo> = in_order(stage).filter(|info| !seen.contains(&info.name)).collect();
        if !new.is_empty() {
            let _ = write!(text, "\n## Stage `{}`\n", stage.name());
        }
        for info in new {
            seen.push(info.name);
            text += &entry(info, &stages);
        }
    }
    let rest: Vec<&PassInfo> = registry::passes().iter().filter(|info| !seen.contains(&info.name)).collect();
    if !rest.is_empty() {
        text += "\n## In no standard stage\n";
    }
    for info in rest {
        text += &entry(info, &stages);
    }
    text
}

/// Returns the standard stages of a target whose fusions contain nothing, so that each conditional pass is present.
fn stages() -> [Pipeline; 7] {
    let mut profile = TargetProfile::generic();
    profile.fusion.inside.clear();
    let all = [
        stages::canonicalize,
        stages::expand,
        stages::simplify,
        stages::parallelize,
        stages::layout,
        stages::fuse,
        stages::schedule,
    ];
    all.map(|stage| stage(&profile))
}

/// Returns the registered passes of a stage in the order of their first runs.
fn in_order(stage: &Pipeline) -> impl Iterator<Item = &'static PassInfo> {
    let names = distinct(stage.names());
    names.into_iter().filter_map(|name| registry::passes().iter().find(|info| info.name == name))
}

fn entry(info: &PassInfo, stages: &[Pipeline]) -> String {
    let PassInfo { name, summary, description, profile, aliases, .. } = info;
    let of: Vec<&str> = stages.iter().filter(|stage| stage.names().contains(name)).map(Pipeline::name).collect();
    let mut text =
        format!("\n### `{name}`\n\n{}\n\n", wrapped(&format!("*{}.* {description}", capitalized(summary)), 0));
    let mut item = |label: &str, value: String| {
        text += &wrapped(&format!("- {label}: {value}"), 2);
        text.push('\n');
    };
    if !aliases.is_empty() {
        item("XLA name", code_list(aliases));
    }
    item("Stages", if of.is_empty() { "none".to_string() } else { code_list(&of) });
    item("Target profile", if profile.is_empty() { "not read".to_string() } else { code_list(profile) });
    item(
        "Statistics",
        match info.counted {
            Counted::Rules(names) => format!("applications of each rule: {}", code_list(&distinct(names()))),
            Counted::Rewrites(unit) => unit.to_string(),
            Counted::Nothing => "no rewrites, only runs and changes".to_string(),
        },
    );
    text
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Removes repeated names; keeps the order of the first ones.
fn distinct(mut names: Vec<&'static str>) -> Vec<&'static str> {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

fn code_list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Breaks a paragraph into lines of at most 120 columns; `indent` spaces precede all lines but the first.
fn wrapped(paragraph: &str, indent: usize) -> String {
    const WIDTH: usize = 120;
    let mut text = String::new();
    let mut column = 0;
    for word in paragraph.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += length;
    }
    text
}
