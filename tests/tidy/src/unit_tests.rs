//! The rule for libraries that Cargo does not build for unit tests: a unit test there would never run.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{Finding, layers, lexer};

/// Checks the sources of each crate (its folder, and files below `src` with their contents) against the output of
/// `cargo metadata --no-deps`.
pub fn check(metadata: &Value, sources: &BTreeMap<&str, Vec<(String, String)>>) -> Result<Vec<Finding>> {
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let mut found = Vec::new();
    for package in packages.iter().filter(|package| has_untested_library(package)) {
        let manifest = layers::manifest_path(metadata, package);
        let folder = manifest.trim_end_matches("/Cargo.toml");
        for (below, content) in sources.get(folder).into_iter().flatten() {
            let lines = lexer::lines(content);
            let tests = lines
                .iter()
                .enumerate()
                .filter(|(_, line)| line.code.contains("#[test]") || line.code.contains("cfg(test)"));
            found.extend(tests.map(|(number, _)| {
                let advice = format!("{folder} has no unit tests (`test = false`): move the test to {folder}/tests");
                Finding::failure(&format!("{folder}/src/{below}"), number + 1, "unit-test", advice)
            }));
        }
    }
    Ok(found)
}

/// Whether the library of a package has `test = false`.
fn has_untested_library(package: &Value) -> bool {
    package["targets"].as_array().into_iter().flatten().any(|target| {
        let kinds = target["kind"].as_array().into_iter().flatten();
        target["test"] == false && kinds.filter_map(Value::as_str).any(|kind| kind.ends_with("lib"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tests_that_would_not_run_are_found() {
        let target = |kind: &str, test: bool| json!({"kind": [kind], "test": test});
        let found = |targets: &[Value], content: &str| {
            let package = json!({"manifest_path": "/r/a/Cargo.toml", "targets": targets});
            let metadata = json!({"workspace_root": "/r", "packages": [package]});
            let sources = BTreeMap::from([("a", vec![("b.rs".to_owned(), content.to_owned())])]);
            check(&metadata, &sources).unwrap().iter().map(Finding::to_string).collect::<Vec<_>>()
        };
        let source = "//! Text.\n\n// cfg(test)\nconst A: &str = \"#[test]\";\n\n#[cfg(test)]\nmod tests;\n";
        let advice = "a/src/b.rs:6: unit-test: a has no unit tests (`test = false`): move the test to a/tests";
        assert_eq!(found(&[target("lib", false), target("test", true)], source), [advice]);
        assert!(found(&[target("lib", false)], "//! Text.\n").is_empty());
        assert!(found(&[target("lib", true), target("bin", false)], source).is_empty());
    }
}
