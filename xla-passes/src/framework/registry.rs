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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_makes_the_pass_of_that_name() {
        for info in PASSES {
            assert_eq!(info.name, (info.make)().name());
        }
    }

    #[test]
    fn names_are_in_alphabetical_order() {
        assert!(PASSES.iter().map(|info| info.name).is_sorted());
    }

    #[test]
    fn lists_have_groups() {
        let text = parse("inline-calls, [simplify-tuples,[dead-code ]* ]*,fuse").expect("a list").to_string();
        let group = "  group (at most 12 iterations):\n    simplify-tuples\n    group (at most 12 iterations):\n      dead-code\n";
        assert_eq!(text, format!("custom:\n  inline-calls\n{group}  fuse\n"));
        assert_eq!(parse("[fuse]").expect("a list").to_string(), "custom:\n  group:\n    fuse\n");
    }

    #[test]
    fn wrong_lists_are_refused() {
        let deep = "[".repeat(100);
        for (text, what) in [
            ("", "the name of a pass is missing"),
            ("fuse,", "the name of a pass is missing"),
            ("[fuse", "`[` has no matching `]`"),
            ("fuse]", "`]` has no matching `[`"),
            ("fuse*", "a star must follow a group"),
            ("[fuse]fuse", "a group must be followed by a comma"),
            ("[]*", "the name of a pass is missing"),
            ("fuse[dead-code]", "a group must be followed by a comma"),
            ("[fuse]\u{e4}", "a group must be followed by a comma"),
            (&deep, "nested too deep"),
        ] {
            let error = parse(text).err().expect(text);
            assert!(error.message().contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn unknown_names_are_refused_with_a_list() {
        let error = pipeline(["dead-code", "dead-cod"]).err().expect("there is no such pass");
        assert!(
            error.message().contains("\"dead-cod\"; did you mean dead-code?")
                && error.message().contains("simplify-tuples"),
            "{error}"
        );
    }
}
