//! Test files of a checkout of JAX, and the excluded ones, with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The tests that belong to the version of JAX that is run.
pub const TAG: &str = "jax-v0.10.2 (commit 990e6a0b84)";

const SEVERAL_DEVICES: &str = "programs of several devices";
const GPU: &str = "needs a GPU";
const PALLAS: &str = "kernels for GPUs and TPUs";
const PROCESSES: &str = "several processes";
const BACK_COMPAT: &str = "programs of other devices, and of old versions";

/// Files and folders that are run only when they are named.
const LEFT_OUT: &[(&str, &str)] = &[
    ("array_test", SEVERAL_DEVICES),
    ("async_collectives_test", SEVERAL_DEVICES),
    ("custom_partitioning_test", SEVERAL_DEVICES),
    ("linalg_sharding_test", SEVERAL_DEVICES),
    ("pjit_test", SEVERAL_DEVICES),
    ("pmap_test", SEVERAL_DEVICES),
    ("ragged_collective_test", SEVERAL_DEVICES),
    ("shard_alike_test", SEVERAL_DEVICES),
    ("shard_map_test", SEVERAL_DEVICES),
    ("cudnn_fusion_test", GPU),
    ("gpu_memory_flags_test", GPU),
    ("magma_linalg_test", GPU),
    ("mock_gpu_test", GPU),
    ("mock_gpu_topology_test", GPU),
    ("multiprocess_gpu_test", GPU),
    ("mosaic/", PALLAS),
    ("mosaic_test", PALLAS),
    ("pallas/", PALLAS),
    ("distributed_initialize_test", PROCESSES),
    ("distributed_test", PROCESSES),
    ("multiprocess/", PROCESSES),
    ("export_back_compat_test", BACK_COMPAT),
    ("export_serialization_back_compat_test", BACK_COMPAT),
    ("pytorch_interoperability_test", "needs PyTorch"),
];

/// Folders deeper than this below `tests` are not looked into.
const DEEPEST: usize = 4;

/// A checkout of JAX.
pub struct TestFolder {
    /// The folder that has `tests`, `conftest.py` and `pyproject.toml`.
    pub root: PathBuf,
    /// Names of all test files: paths below `tests` without `.py`, sorted.
    names: Vec<String>,
}

impl TestFolder {
    /// Opens a checkout, given by its root or by its folder `tests`.
    pub fn open(given: &Path) -> Result<TestFolder> {
        let folder = fs::canonicalize(given).with_context(|| format!("there is no folder {}", given.display()))?;
        let root = [Some(folder.as_path()), folder.parent()]
            .into_iter()
            .flatten()
            .find(|root| ["tests", "conftest.py", "pyproject.toml"].iter().all(|name| root.join(name).exists()));
        let Some(root) = root else {
            bail!(
                "{} is no checkout of JAX at tag {TAG}: it has no tests, conftest.py and pyproject.toml side by side",
                given.display()
            );
        };
        let mut names = Vec::new();
        collect(&root.join("tests"), "", DEEPEST, &mut names)?;
        names.sort();
        Ok(TestFolder { root: root.to_path_buf(), names })
    }

    /// Requested test files; by default all except the excluded ones.
    pub fn select(&self, asked: &[String]) -> Result<Vec<String>> {
        if asked.is_empty() {
            return Ok(self.names.iter().filter(|name| reason(name).is_none()).cloned().collect());
        }
        let mut found: Vec<String> = asked.iter().map(|file| self.find(file)).collect::<Result<_>>()?;
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// The files that are left out, each with the reason.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.names.iter().filter_map(|name| Some((name.as_str(), reason(name)?)))
    }

    fn find(&self, asked: &str) -> Result<String> {
        let name = asked.strip_prefix("tests/").unwrap_or(asked).trim_end_matches(".py");
        let long = format!("{name}_test");
        let found = self.names.iter().find(|known| **known == name || **known == long);
        found
            .cloned()
            .with_context(|| format!("there is no test file {asked} in {}", self.root.join("tests").display()))
    }
}

fn reason(name: &str) -> Option<&'static str> {
    let is_meant = |entry: &str| entry == name || (entry.ends_with('/') && name.starts_with(entry));
    LEFT_OUT.iter().find(|(entry, _)| is_meant(entry)).map(|(_, reason)| *reason)
}

/// Adds the test files of a folder, whose name below `tests` is `prefix`.
fn collect(folder: &Path, prefix: &str, depth: usize, names: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            if depth > 0 {
                collect(&entry.path(), &format!("{prefix}{name}/"), depth - 1, names)?;
            }
        } else if let Some(stem) = name.strip_suffix(".py").filter(|stem| stem.ends_with("_test")) {
            names.push(format!("{prefix}{stem}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> TestFolder {
        TestFolder { root: "jax".into(), names: names.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn files_are_left_out_unless_named() {
        let folder = folder(&["array_test", "lax_test", "pallas/ops_test", "third_party/scipy/line_search_test"]);
        assert_eq!(folder.select(&[]).unwrap(), ["lax_test", "third_party/scipy/line_search_test"]);
        let asked = ["tests/lax_test.py", "array", "lax"].map(str::to_owned);
        assert_eq!(folder.select(&asked).unwrap(), ["array_test", "lax_test"]);
        let left_out: Vec<_> = folder.left_out().collect();
        assert_eq!(left_out, [("array_test", SEVERAL_DEVICES), ("pallas/ops_test", PALLAS)]);
    }

    #[test]
    fn a_file_or_a_folder_that_is_not_there_is_named() {
        let error = folder(&["lax_test"]).select(&["lux".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "there is no test file lux in jax/tests");
        let error = |path: &str| TestFolder::open(Path::new(path)).err().unwrap().to_string();
        assert!(error("no/such/folder").starts_with("there is no folder no/such/folder"));
        assert!(error(env!("CARGO_MANIFEST_DIR")).contains("is no checkout of JAX"));
    }
}
