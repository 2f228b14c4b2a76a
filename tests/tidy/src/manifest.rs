//! The rules for the manifests of the crates: only the root manifest states versions and lints.

use crate::Finding;

/// Checks the manifest of one crate.
pub fn check(path: &str, content: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let (mut section, mut shares_lints) = ("", false);
    for (number, line) in content.lines().map(str::trim).enumerate() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        } else if line.is_empty() || line.starts_with('#') {
            continue;
        } else if section == "lints" {
            shares_lints |= line == "workspace = true";
        } else if section.ends_with("dependencies") && !takes_version_from_root(line) {
            let advice =
                "put the version into [workspace.dependencies] of the root Cargo.toml and say `workspace = true` here";
            found.push(Finding::failure(path, number + 1, "manifest", advice));
        }
    }
    if !shares_lints {
        found.push(Finding::failure(path, 0, "manifest", "add `[lints]` with `workspace = true`"));
    }
    found
}

fn takes_version_from_root(line: &str) -> bool {
    line.contains("workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_lints_are_the_root_manifests() {
        let good = "[dependencies]\n# why\na.workspace = true\nb = { workspace = true, optional = true }\n\n[lints]\nworkspace = true\n";
        assert!(check("a/Cargo.toml", good).is_empty());
        let bad = "[package]\nversion = \"1\"\n[dev-dependencies]\na = \"1\"\n";
        assert_eq!(check("a/Cargo.toml", bad).iter().map(|finding| finding.line).collect::<Vec<_>>(), [4, 0]);
    }
}
