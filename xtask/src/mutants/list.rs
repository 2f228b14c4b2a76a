//! Mutants that cargo-mutants lists: the changes, and their places in the sources.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use mutants::Mutant;
use serde_json::Value;

use crate::shell::{cargo, output};

/// Choice of mutants.
pub struct Choice {
    /// Number of mutants.
    pub sample: usize,
    pub all: bool,
    /// Number of the sample.
    pub number: Option<usize>,
    /// Files and folders.
    pub files: Vec<String>,
}

/// Lists all mutants of the chosen files, and marks the sampled ones.
pub fn list(choice: &Choice) -> Result<Vec<Mutant>> {
    let mut command = cargo(&["mutants", "--list", "--json"]);
    command.args(["--package", "xla-llvm", "--package", "xla-passes"]);
    let text = output(command).context("`cargo mutants --list` failed")?;
    let mut all: Vec<Value> = serde_json::from_str(&text).context("cargo-mutants lists no JSON")?;
    all.retain(|value| {
        let file = value["file"].as_str().unwrap_or_default();
        choice.files.is_empty() || choice.files.iter().any(|start| file.starts_with(start))
    });
    let (stride, first) = sample(all.len(), choice);
    println!("{} mutants; every {stride}th from {first}", all.len());
    let is_chosen = |index: usize| index % stride == first;
    all.iter().enumerate().map(|(index, value)| mutant(value, index as u32 + 1, is_chosen(index))).collect()
}

/// Returns the distance between mutants of the sample, and its first mutant.
fn sample(count: usize, choice: &Choice) -> (usize, usize) {
    if choice.all {
        return (1, 0);
    }
    let stride = (count / choice.sample).max(1);
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86_400);
    (stride, choice.number.unwrap_or(days as usize) % stride)
}

fn mutant(value: &Value, id: u32, is_chosen: bool) -> Result<Mutant> {
    let text = |key: &str| value[key].as_str().map(str::to_owned).with_context(|| format!("a mutant without {key}"));
    let number = |key: &str| value["span"]["start"][key].as_u64().context("a mutant without a place");
    Ok(Mutant {
        id,
        file: text("file")?,
        name: text("name")?,
        genre: text("genre")?,
        replacement: text("replacement")?,
        start: (number("line")? as usize, number("column")? as usize),
        is_chosen,
    })
}
