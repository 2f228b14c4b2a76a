//! Test that a pass, its file and its cases have one name.

use std::fs;
use std::path::{Path, PathBuf};

use xla_passes::registry;

fn crate_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns all files in a folder and its subfolders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Whether a path is the file of a module, or the `mod.rs` of its folder.
fn is_module(path: &Path, stem: &str) -> bool {
    let ends = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
    ends.iter().any(|end| path.ends_with(end))
}

#[test]
fn a_pass_lives_in_the_file_of_its_name() {
    let sources = files(&crate_path("src"));
    for (name, _) in registry::list() {
        let stem = name.replace('-', "_");
        let of_name: Vec<&PathBuf> = sources.iter().filter(|path| is_module(path, &stem)).collect();
        let [source] = of_name[..] else { panic!("{name}: not one file {stem}.rs but {of_name:?}") };
        let text = fs::read_to_string(source).expect("a readable file");
        let named = format!("fn name(&self) -> &'static str {{\n        \"{name}\"\n");
        assert!(text.contains(&named), "{} is not the file of pass {name}", source.display());
    }
}

#[test]
fn a_pass_has_cases_of_its_name() {
    let mut cases = files(&crate_path("tests"));
    cases.extend(files(&crate_path("src")));
    for (name, _) in registry::list() {
        let stem = name.replace('-', "_");
        let is_case = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let listed = path.parent().is_some_and(|folder| folder.ends_with("tests/passes"));
            listed && file.starts_with(&stem) && file.ends_with(".hlo")
        };
        let is_test = |path: &PathBuf| path.ends_with(format!("tests/passes/{stem}.rs"));
        let tests_itself = |path: &PathBuf| {
            is_module(path, &stem) && fs::read_to_string(path).is_ok_and(|text| text.contains("#[cfg(test)]"))
        };
        assert!(
            cases.iter().any(|path| is_case(path) || is_test(path) || tests_itself(path)),
            "pass {name} has neither tests/passes/{stem}*.hlo nor tests/passes/{stem}.rs, nor tests in its file"
        );
    }
}

#[test]
fn the_table_of_passes_is_in_order() {
    let names: Vec<&str> = registry::list().map(|(name, _)| name).collect();
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn a_renamed_pass_says_its_new_name() {
    let error = registry::pass("split-folds").err().expect("the old name is refused");
    assert_eq!(error.message(), r#"pass "split-folds" was renamed to "split-reductions""#);
}
