//! Licences of everything in the library: the project, the linked archives, the Rust crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::name;
use crate::link;
use crate::shell::{capture, cargo, program, root};

/// Beginnings of names of files that a crate states its licence in.
const FILES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Writes them into a folder.
pub fn collect(folder: &Path) -> Result<()> {
    fs::copy(root().join("LICENSE"), folder.join("LICENSE"))?;
    for package in owners(&link::archives()?)? {
        let text = Path::new("/usr/share/doc").join(&package).join("copyright");
        fs::copy(&text, folder.join(&package)).with_context(|| text.display().to_string())?;
    }
    fs::write(folder.join("rust-crates"), crates()?)?;
    Ok(())
}

/// Debian's packages that archives are of.
fn owners(archives: &[PathBuf]) -> Result<BTreeSet<String>> {
    let mut command = program("dpkg", &["--search"]);
    command.args(archives.iter().map(|archive| fs::canonicalize(archive).unwrap_or_else(|_| archive.clone())));
    let found = capture(command).context("who brings the linked archives, and under which licence?")?;
    // `zlib1g-dev:amd64: /usr/lib/x86_64-linux-gnu/libz.a`
    Ok(found.lines().filter_map(|line| line.split(':').next()).map(str::to_owned).collect())
}

/// The licences of the crates that the plugin is made of, each text once, under the names of its crates.
fn crates() -> Result<String> {
    let arguments = ["metadata", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"];
    let metadata: Value = serde_json::from_str(&capture(cargo(&arguments))?)?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked(&metadata, "xla-pjrt-plugin")? {
        let title = format!("{} {} ({})", word(package, "name"), word(package, "version"), word(package, "license"));
        let folder = Path::new(word(package, "manifest_path")).parent().unwrap_or(Path::new(""));
        for text in texts_in(folder)? {
            texts.entry(text).or_default().push(title.clone());
        }
    }
    let mut all = String::from("Licences of the Rust crates in this library.\n");
    for (text, crates) in texts {
        all += &format!("\n{}\n{}\n\n{}\n", "-".repeat(80), crates.join("\n"), text.trim_end());
    }
    Ok(all)
}

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = name(&path).to_uppercase();
        if path.is_file() && FILES.iter().any(|start| name.starts_with(start)) {
            found.push(String::from_utf8_lossy(&fs::read(&path)?).into_owned());
        }
    }
    Ok(found)
}

/// Packages from registries that end up in the library of `crate_name`: no build scripts' needs, no macros.
fn linked<'a>(metadata: &'a Value, crate_name: &str) -> Result<Vec<&'a Value>> {
    let packages = list(&metadata["packages"]);
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (word(node, "id"), node)).collect();
    let by_id: BTreeMap<&str, &Value> = packages.iter().map(|package| (word(package, "id"), package)).collect();
    let start =
        packages.iter().find(|package| word(package, "name") == crate_name).context("the plugin's crate is missing")?;
    let (mut todo, mut seen) = (vec![word(start, "id")], BTreeSet::new());
    while let Some(id) = todo.pop() {
        let macros = list(&by_id[id]["targets"]).iter().any(|target| target["kind"][0] == "proc-macro");
        if macros || !seen.insert(id) {
            continue;
        }
        let normal = |dependency: &&Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        todo.extend(list(&nodes[id]["deps"]).iter().filter(normal).map(|dependency| word(dependency, "pkg")));
    }
    Ok(seen.into_iter().map(|id| by_id[id]).filter(|package| !package["source"].is_null()).collect())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn build_scripts_and_macros_are_not_in_the_library() {
        let package = |name: &str, kind: &str, source: Value| {
            let targets = [json!({"kind": [kind]})];
            json!({"id": name, "name": name, "targets": targets, "source": source})
        };
        let needs = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                package("plugin", "cdylib", Value::Null), package("linked", "lib", json!("r")),
                package("macros", "proc-macro", json!("r")), package("cc", "lib", json!("r")),
                package("deep", "lib", json!("r")), package("syn", "lib", json!("r")),
            ],
            "resolve": {"nodes": [
                {"id": "plugin", "deps": [needs("linked", Value::Null), needs("cc", json!("build"))]},
                {"id": "linked", "deps": [needs("macros", Value::Null), needs("deep", Value::Null)]},
                {"id": "macros", "deps": [needs("syn", Value::Null)]},
                {"id": "deep", "deps": [needs("linked", Value::Null)]},
                {"id": "cc", "deps": []}, {"id": "syn", "deps": []},
            ]},
        });
        let names: Vec<&str> =
            linked(&metadata, "plugin").unwrap().into_iter().map(|found| word(found, "name")).collect();
        assert_eq!(names, ["deep", "linked"]);
    }
}
