//! The rule for the crate graph: dependencies point downwards, and only LLVM backends depend on LLVM.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Finding;

/// Bindings of LLVM and of device drivers, and the crates that may depend on them.
const GUARDED: &[(&str, &[&str])] = &[
    ("inkwell", &["xla-llvm", "backend-cpu", "backend-gpu-"]),
    ("llvm-sys", &["xla-llvm", "backend-cpu", "backend-gpu-"]),
    ("cudarc", &["backend-gpu-"]),
];

/// The crates of the workspace that a crate may depend on; `None` for a crate that is not in the picture.
fn below(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "xla-hlo" | "simulated-gpu" | "sass-model" | "tidy" | "mutants" | "new-backend" => &[],
        "xtask" => &["sass-model", "tidy", "mutants", "new-backend"],
        "simulated-libraries" => &["simulated-gpu"],
        "xla-passes" | "xla-stablehlo" => &["xla-hlo"],
        "xla-spmd" => &["xla-hlo", "xla-passes"],
        "xla-service" => &["xla-hlo", "xla-passes", "xla-spmd"],
        "xla-llvm" | "xla-cpu-runtime" | "backend-template" => &["xla-hlo", "xla-passes", "xla-service"],
        "backend-cpu" => &["xla-hlo", "xla-passes", "xla-service", "xla-llvm", "xla-cpu-runtime"],
        _ if name.starts_with("backend-") => &["xla-hlo", "xla-passes", "xla-service", "xla-llvm"],
        "xla-ffi" | "xla-mpi" => &["xla-hlo", "xla-service"],
        "xla-pjrt" => &["xla-hlo", "xla-service", "xla-stablehlo", "xla-ffi", "xla-mpi"],
        // A plugin for tests, and the one that users install.
        "xla-pjrt-interpreter" => &["xla-service", "xla-pjrt"],
        "xla-pjrt-plugin" => &["xla-pjrt", "xla"],
        "xla" => &["xla-hlo", "xla-passes", "xla-service", "xla-llvm", "xla-stablehlo", "backend-"],
        "xla-build" => &["xla"],
        "xla-tests" => {
            &["xla-hlo", "xla-passes", "xla-service", "xla-llvm", "xla-stablehlo", "backend-", "xla", "simulated-gpu"]
        }
        _ => return None,
    })
}

/// Checks the output of `cargo metadata --no-deps`.
pub fn check(metadata: &Value) -> Result<Vec<Finding>> {
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut found = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package without a name")?;
        let path = manifest_path(metadata, package);
        let Some(below) = below(name) else {
            let advice = format!(
                "{name} is not in the picture of the crates: add it to tests/tidy/src/layers.rs and ARCHITECTURE.md"
            );
            found.push(Finding::failure(&path, 0, "manifest", advice));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let other = dependency["name"].as_str().unwrap_or_default();
            // The conformance kit is above a backend, but the backend's own tests may run it.
            let kit = other == "xla-tests" && dependency["kind"] == "dev" && name.starts_with("backend-");
            if names.contains(&other) && !matches(below, other) && !kit {
                let advice = format!("{name} may depend on {}, not on {other}", list(below));
                found.push(Finding::failure(&path, 0, "manifest", advice));
            }
            let guard = GUARDED.iter().find(|(guarded, _)| *guarded == other);
            if let Some((_, owners)) = guard.filter(|(_, owners)| !matches(owners, name)) {
                let advice = format!("only {} may depend on {other}", list(owners));
                found.push(Finding::failure(&path, 0, "manifest", advice));
            }
        }
    }
    Ok(found)
}

/// Whether a name is listed; an entry that ends with `-` matches every name with that prefix.
fn matches(list: &[&str], name: &str) -> bool {
    list.iter().any(|entry| *entry == name || (entry.ends_with('-') && name.starts_with(entry)))
}

fn list(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().map(|name| if name.ends_with('-') { format!("{name}*") } else { (*name).to_owned() }).collect();
    if names.is_empty() { "no crate of the workspace".to_owned() } else { shown.join(", ") }
}

/// The path of a package's manifest from the root of the repository.
pub fn manifest_path(metadata: &Value, package: &Value) -> String {
    let root = format!("{}/", metadata["workspace_root"].as_str().unwrap_or_default());
    package["manifest_path"].as_str().unwrap_or_default().replace(&root, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn advice(name: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let package = |name: &str, dependencies: &[(&str, Option<&str>)]| {
            let dependencies: Vec<_> =
                dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
            json!({"name": name, "manifest_path": format!("/r/{name}/Cargo.toml"), "dependencies": dependencies})
        };
        let others = [
            "xla-hlo",
            "xla-passes",
            "xla-service",
            "xla-llvm",
            "xla-cpu-runtime",
            "backend-cpu",
            "xla-tests",
            "xla",
            "xtask",
        ];
        let mut packages: Vec<_> =
            others.iter().filter(|other| **other != name).map(|other| package(other, &[])).collect();
        packages.push(package(name, dependencies));
        let metadata = json!({"workspace_root": "/r", "packages": packages});
        check(&metadata).unwrap().into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn dependencies_point_down() {
        assert!(advice("xla-service", &[("xla-hlo", None), ("xla-passes", None), ("tracing", None)]).is_empty());
        assert_eq!(
            advice("xla-hlo", &[("xla-passes", None)]),
            ["xla-hlo/Cargo.toml: manifest: xla-hlo may depend on no crate of the workspace, not on xla-passes"]
        );
        assert_eq!(advice("xla-passes", &[("xla-service", Some("dev"))]).len(), 1);
        assert_eq!(advice("xtask", &[("xla-hlo", None)]).len(), 1);
    }

    #[test]
    fn backends_do_not_know_each_other() {
        assert_eq!(advice("backend-gpu-nvptx", &[("backend-cpu", None)]).len(), 1);
        assert_eq!(advice("backend-template", &[("xla-llvm", None)]).len(), 1);
        assert!(advice("backend-cpu", &[("xla-llvm", None), ("xla-tests", Some("dev"))]).is_empty());
        assert_eq!(advice("backend-gpu-nvptx", &[("xla-cpu-runtime", None)]).len(), 1);
        assert!(advice("backend-cpu", &[("xla-cpu-runtime", None)]).is_empty());
        assert!(advice("xla", &[("backend-cpu", None), ("backend-gpu-nvptx", None)]).is_empty());
    }

    #[test]
    fn llvm_stays_where_it_belongs() {
        assert!(advice("backend-gpu-nvptx", &[("inkwell", None), ("cudarc", None)]).is_empty());
        assert_eq!(advice("xla-cpu-runtime", &[("xla-llvm", None), ("inkwell", None)]).len(), 2);
        let found = advice("xla-service", &[("llvm-sys", None)]);
        assert!(found[0].contains("only xla-llvm, backend-cpu, backend-gpu-* may depend on llvm-sys"), "{found:?}");
    }

    #[test]
    fn a_new_crate_must_be_placed() {
        assert!(advice("xla-extra", &[])[0].contains("xla-extra is not in the picture"));
    }
}
