//! Compares programs with the HLO that XLA made of them: `compare_with_xla FOLDER [EXPECTED]`.
//!
//! `tests/oracle/README.md` says what is in the folder. Differences that are not in the list EXPECTED are printed in
//! full, and so are entries of it that differ no more; without a list, all differences are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use xla_hlo::text::parse_module;
use xla_hlo::{Module, VerifiedModule};

#[path = "../tests/oracle/compare.rs"]
mod compare;
#[path = "../tests/oracle/values.rs"]
mod values;

/// Differences by their programs, `FORM/NAME`.
type Found = BTreeMap<String, Vec<String>>;

fn ours(path: &Path) -> Result<Module, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let module = match path.extension().is_some_and(|extension| extension == "mlir") {
        true => xla_stablehlo::parse_text(&String::from_utf8_lossy(&bytes)),
        false => xla_stablehlo::parse_bytecode(&bytes),
    };
    let module = module.and_then(|module| Ok(VerifiedModule::new(module)?.into_inner()));
    module.map_err(|error| format!("refused: {error}"))
}

/// Lines that say how a program differs; none where it does not.
fn differences(path: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(path.with_extension("hlo")).map_err(|error| error.to_string())?;
    let theirs = parse_module(&text).map_err(|error| format!("XLA's: {error}"))?;
    let ours = ours(path)?;
    let difference = compare::compare(&ours, &theirs);
    if difference.kinds().is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = vec![format!("differs in: {}", difference.kinds().join(", "))];
    lines.extend(difference.header.into_iter().chain(difference.instructions).chain(difference.metadata));
    match values::difference(&ours, &theirs) {
        Ok(Some(apart)) if apart > 1.0 => lines.push(format!("values differ: {apart:.1} times what is allowed")),
        Ok(Some(_)) => lines.push("values are equal".to_string()),
        Ok(None) => {}
        Err(error) => lines.push(format!("values: {error}")),
    }
    Ok(lines)
}

/// Programs of a folder with one folder for each form.
fn programs(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_program = |path: &PathBuf| path.extension().is_some_and(|e| e == "mlirbc" || e == "mlir");
    let form = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for folder in entries(folder).filter(|path| path.is_dir()) {
        let named = |path: PathBuf| (format!("{}/{}", form(&folder), form(&path)), path);
        found.extend(entries(&folder).filter(is_program).map(named));
    }
    found.sort();
    found
}

/// Names in a list of `REASON FORM/NAME ...` lines; `#` begins a remark.
fn expected(path: Option<&Path>) -> BTreeSet<String> {
    let text = path.map(|path| fs::read_to_string(path).expect("the list")).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split_whitespace().skip(1)).map(str::to_string).collect()
}

#[expect(clippy::print_stdout, reason = "an example's result")]
fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let Some(folder) = arguments.first() else {
        println!("usage: compare_with_xla FOLDER [EXPECTED]");
        return ExitCode::FAILURE;
    };
    let expected = expected(arguments.get(1).map(PathBuf::as_path));
    let (mut count, mut different) = (BTreeMap::<String, [usize; 2]>::new(), Found::new());
    for (name, path) in programs(folder) {
        let lines = differences(&path).unwrap_or_else(|error| vec![error]);
        let form = name.split('/').next().unwrap_or_default().to_string();
        let [all, equal] = count.entry(form).or_default();
        *all += 1;
        *equal += usize::from(lines.is_empty());
        if !lines.is_empty() {
            different.insert(name, lines);
        }
    }
    let new: Vec<&String> = different.keys().filter(|name| !expected.contains(*name)).collect();
    for name in &new {
        println!("{name}");
        different[*name].iter().for_each(|line| println!("    {line}"));
    }
    let stale: Vec<&String> = expected.iter().filter(|name| !different.contains_key(*name)).collect();
    stale.iter().for_each(|name| println!("{name} is in the list and does not differ"));
    for (form, [all, equal]) in count {
        println!("{form}: {all} programs, {equal} equal");
    }
    println!("{} differ and are not in the list, {} are in the list and do not differ", new.len(), stale.len());
    if new.is_empty() && stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
