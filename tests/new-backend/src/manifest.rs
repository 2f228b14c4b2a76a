//! Makes the manifest of a crate independent of its workspace.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Replaces a manifest's references to the workspace at `root` by their values; crates of the workspace
/// become paths into it. A vendor later puts versions of the published crates in their place.
pub fn make_independent(manifest: &Path, root: &Path) -> Result<()> {
    let text = fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let workspace = fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
    fs::write(manifest, independent(&text, &workspace, &root.display().to_string())?)
        .with_context(|| format!("cannot write {}", manifest.display()))
}

fn independent(text: &str, workspace: &str, root: &str) -> Result<String> {
    let mut section = "";
    let mut out = String::new();
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        }
        out += &match (section, line.split_once('=')) {
            ("[lints]", _) => String::new(),
            ("[package]", Some((key, _))) if key.trim().ends_with(".workspace") => {
                let key = key.trim().trim_end_matches(".workspace");
                format!("{key} = {}\n", value(workspace, "[workspace.package]", key)?)
            }
            (_, Some((key, given))) if key.trim().ends_with(".workspace") || given.contains("workspace = true") => {
                let key = key.trim().trim_end_matches(".workspace");
                dependency(key, given, &value(workspace, "[workspace.dependencies]", key)?, root)?
            }
            _ => format!("{line}\n"),
        };
    }
    let profile = section_of(workspace, "[profile.dev]");
    Ok(format!("{}\n\n[workspace]\n\n[profile.dev]\n{profile}", out.trim_end()))
}

/// Dependency line with the workspace's value and the crate's own keys in addition to `workspace = true`.
fn dependency(key: &str, given: &str, value: &str, root: &str) -> Result<String> {
    let own = given.trim().trim_start_matches('{').trim_end_matches('}');
    let own: Vec<&str> =
        split_fields(own).into_iter().filter(|f| !f.is_empty() && !["true", "workspace = true"].contains(f)).collect();
    let mut fields = match value.strip_prefix('{') {
        Some(rest) => split_fields(rest.trim_end_matches('}')).into_iter().map(str::to_owned).collect(),
        None => vec![format!("version = {value}")],
    };
    for field in &mut fields {
        if let Some(path) = field.strip_prefix("path = \"") {
            *field = format!("path = \"{root}/{path}");
        }
    }
    fields.extend(own.into_iter().map(str::to_owned));
    Ok(format!("{key} = {{ {} }}\n", fields.join(", ")))
}

/// Splits at commas that are not inside of brackets.
fn split_fields(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut fields) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                fields.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    fields.push(text[start..].trim());
    fields
}

fn section_of(workspace: &str, section: &str) -> String {
    let lines = workspace.lines().skip_while(|line| *line != section).skip(1);
    lines.take_while(|line| !line.starts_with('[') && !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

/// Value of `key` in a section of the workspace's manifest.
fn value(workspace: &str, section: &str, key: &str) -> Result<String> {
    let lines = workspace.lines().skip_while(|line| *line != section).skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    let found = lines.find_map(|line| line.split_once('=').filter(|(k, _)| k.trim() == key));
    match found {
        Some((_, value)) => Ok(value.trim().to_owned()),
        None => bail!("{section} of the workspace has no {key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_the_workspace() {
        let workspace = "[workspace.package]\nversion = \"0.1.0\"\n\n[workspace.dependencies]\nxla-hlo = { path = \"xla-hlo\" }\n\
            xla-tests = { path = \"tests\", default-features = false }\ninsta = \"1\"\nserde = { version = \"1\", features = [\"a\", \"b\"] }\n\n\
            [profile.dev]\nopt-level = 1\n\n[profile.release]\n";
        let manifest = "[package]\nname = \"backend-acme\"\nversion.workspace = true\n\n[dependencies]\nxla-hlo.workspace = true\n\
            serde = { workspace = true, optional = true }\n\n[dev-dependencies]\ninsta.workspace = true\nxla-tests.workspace = true\n\n\
            [lints]\nworkspace = true\n";
        let text = independent(manifest, workspace, "/xla").unwrap();
        assert_eq!(
            text,
            "[package]\nname = \"backend-acme\"\nversion = \"0.1.0\"\n\n[dependencies]\nxla-hlo = { path = \"/xla/xla-hlo\" }\n\
            serde = { version = \"1\", features = [\"a\", \"b\"], optional = true }\n\n[dev-dependencies]\ninsta = { version = \"1\" }\n\
            xla-tests = { path = \"/xla/tests\", default-features = false }\n\n[workspace]\n\n[profile.dev]\nopt-level = 1\n"
        );
        let error = independent("[dependencies]\nabacus.workspace = true\n", workspace, "/xla").unwrap_err();
        assert!(error.to_string().contains("abacus"), "{error}");
    }
}
