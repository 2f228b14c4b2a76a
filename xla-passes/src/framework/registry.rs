//! Registry of all passes by name, for `xla opt --passes a,b,c`.

use xla_hlo::text::did_you_mean;
use xla_hlo::{Error, Result};

pub use super::pass_info::{Counted, PassInfo};
use super::pass_table::PASSES;
use crate::{Pass, Pipeline};

/// Former names of renamed passes.
const RENAMED: &[(&str, &str)] = &[
    ("drop-dependencies", "simplify-tokens"),
    ("free-reshapes", "reshape-to-bitcast"),
    ("share-rows", "alias-row-outputs"),
    ("split-folds", "split-reductions"),
];

/// Returns the documentation of all passes in alphabetical order.
pub fn passes() -> &'static [PassInfo] {
    PASSES
}

/// Iterates over the names and summaries of all passes in alphabetical order.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    PASSES.iter().map(|info| (info.name, info.summary))
}

/// Returns the name of the pass that has this alias; other names are returned unchanged.
pub fn resolve_alias(name: &str) -> &str {
    PASSES.iter().find(|info| info.aliases.contains(&name)).map_or(name, |info| info.name)
}

/// Returns the pass with this name or alias. The error names the replacement of a renamed pass, or lists all passes.
pub fn pass(name: &str) -> Result<Box<dyn Pass>> {
    if let Some((old, new)) = RENAMED.iter().find(|(old, _)| *old == name) {
        return Err(Error::not_found(format!("pass {old:?} was renamed to {new:?}")));
    }
    let resolved = resolve_alias(name);
    PASSES.iter().find(|info| info.name == resolved).map(|info| (info.make)()).ok_or_else(|| {
        let names: Vec<&str> = list().map(|(n, _)| n).collect();
        let hint = did_you_mean(name, list().map(|(n, _)| n));
        Error::not_found(format!("unknown pass {name:?}{hint}; the passes are {}", names.join(", ")))
    })
}

/// Returns a pipeline of the named passes in this order.
pub fn pipeline<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Pipeline> {
    names.into_iter().try_fold(Pipeline::new("custom"), |pipeline, name| Ok(pipeline.boxed(pass(name)?)))
}

/// Maximum number of iterations of a group with a star.
const ROUNDS: usize = 12;

/// Maximum nesting depth of groups.
const DEPTH: usize = 32;

/// Parses a pipeline: names or aliases of passes separated by commas, and groups in brackets. A group with a star runs
/// until an iteration changes nothing (at most 12 times): `inline-calls,[simplify-tuples,dead-code]*,fuse`.
pub fn parse(text: &str) -> Result<Pipeline> {
    let mut reader = PipelineParser { rest: text, text };
    let (pipeline, end) = reader.list(0)?;
    if end.is_some() {
        return Err(reader.wrong("`]` has no matching `[`"));
    }
    Ok(pipeline(Pipeline::new("custom")))
}

/// Appends the parsed passes to a pipeline.
type Steps = Box<dyn FnOnce(Pipeline) -> Pipeline>;

struct PipelineParser<'t> {
    text: &'t str,
    rest: &'t str,
}

impl PipelineParser<'_> {
    /// Parses a list up to its end. Returns the steps and the closing bracket, if any.
    fn list(&mut self, depth: usize) -> Result<(Steps, Option<char>)> {
        let mut steps: Vec<Steps> = Vec::new();
        loop {
            steps.push(self.item(depth)?);
            let end = self.rest.chars().next();
            self.rest = self.rest.get(1..).unwrap_or_default();
            match end {
                Some(',') => {}
                Some(']') | None => {
                    let all = move |pipeline| steps.into_iter().fold(pipeline, |pipeline, step| step(pipeline));
                    return Ok((Box::new(all), end));
                }
                Some(_) => return Err(self.wrong("a group must be followed by a comma or the end")),
            }
        }
    }

    fn item(&mut self, depth: usize) -> Result<Steps> {
        self.rest = self.rest.trim_start();
        if let Some(rest) = self.rest.strip_prefix('[') {
            if depth == DEPTH {
                return Err(self.wrong("groups are nested too deeply"));
            }
            self.rest = rest;
            let (steps, end) = self.list(depth + 1)?;
            if end.is_none() {
                return Err(self.wrong("`[` has no matching `]`"));
            }
            let star = self.rest.strip_prefix('*');
            self.rest = star.unwrap_or(self.rest).trim_start();
            let group = if star.is_some() { Pipeline::fixed_point("group", ROUNDS) } else { Pipeline::new("group") };
            return Ok(Box::new(|pipeline| pipeline.stage(steps(group))));
        }
        let end = self.rest.find([',', '[', ']']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let name = name.trim_end();
        if name.is_empty() {
            return Err(self.wrong("the name of a pass is missing"));
        }
        if name.ends_with('*') {
            return Err(self.wrong("a star must follow a group in brackets"));
        }
        let pass = pass(name)?;
        Ok(Box::new(|pipeline| pipeline.boxed(pass)))
    }

    fn wrong(&self, what: &str) -> Error {
        Error::invalid_argument(format!(
            "in the list of passes {:?}: {what}; write a list such as a,[b,c]*,d",
            self.text
        ))
    }
}
