//! `cargo xtask corpus`: the programs of the corpus through the `xla` command, compared with their expected outputs.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pico_args::Arguments;
use rayon::prelude::*;
use serde_json::Value;

use crate::shell::{program, root, run as run_program};
use crate::verdict::{Outcome, Verdict};
use crate::{build, finish, packages, python};

pub const HELP: &str = "\
Builds the `xla` command and runs the programs of tests/corpus with it.

  --platform NAME    a platform to run on (may be repeated; default: cpu and interpreter). Programs for several devices
                     (suite multi_device) run on as many devices of the platform
  --suite NAME       a suite to run (may be repeated; default: those whose operations are all meant to work)
  --case TEXT        only cases whose name contains TEXT
  --shared DIR       run the corpus in DIR instead, and let its check.py judge (makes a Python environment with
                     numpy under target/ when python3 has none)
  --unpack           only lay the archives out as files, in tests/corpus/unpacked

A case that uses an opcode of tests/corpus/not-yet.txt may fail.
";

/// The suites whose operations the compiler has, but for those in `not-yet.txt`.
pub const SUITES: &[&str] = &[
    "elementwise",
    "shapes",
    "reductions",
    "dot",
    "control_flow",
    "models",
    "gather_scatter",
    "rng",
    "complex",
    "zoo",
    "multi_device",
];

/// Time limit of one case.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Selection of cases.
#[derive(PartialEq)]
pub struct Selection {
    platforms: Vec<String>,
    suites: Vec<String>,
    case: Option<String>,
}

impl Default for Selection {
    /// Everything that must pass.
    fn default() -> Selection {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Selection { platforms: owned(&["cpu", "interpreter"]), suites: owned(SUITES), case: None }
    }
}

pub fn run(mut args: Arguments) -> Result<()> {
    let mut selection = Selection::default();
    let platforms: Vec<String> = args.values_from_str("--platform")?;
    let suites: Vec<String> = args.values_from_str("--suite")?;
    selection.case = args.opt_value_from_str("--case")?;
    let shared: Option<PathBuf> = args.opt_value_from_str("--shared")?;
    let unpack_only = args.contains("--unpack");
    finish(args)?;
    if unpack_only {
        for name in archives()? {
            println!("{}", unpack(&name)?.display());
        }
        return Ok(());
    }
    if !platforms.is_empty() {
        selection.platforms = platforms;
    }
    if !suites.is_empty() {
        selection.suites = suites;
    }
    match shared {
        Some(folder) => judged(&folder, &selection),
        None => own(&selection),
    }
}

/// Runs the repository's own corpus.
pub fn own(selection: &Selection) -> Result<()> {
    packages::ensure()?;
    let xla = build::xla()?;
    let mut cases = Vec::new();
    for suite in &selection.suites {
        let folder = unpack(suite)?;
        for entry in fs::read_dir(folder)? {
            let case = Case::read(&entry?.path())?;
            if selection.case.as_ref().is_none_or(|text| case.name.contains(text)) {
                cases.push(case);
            }
        }
    }
    cases.sort_by(|a, b| (&a.suite, &a.name).cmp(&(&b.suite, &b.name)));
    let mut verdict = Verdict::new(not_yet()?);
    for platform in &selection.platforms {
        println!("\n{} cases on platform {platform}", cases.len());
        verdict.add(platform, run_all(&xla, platform, &cases));
    }
    verdict.report(*selection == Selection::default())
}

/// A case laid out as files.
struct Case {
    folder: PathBuf,
    suite: String,
    name: String,
    opcodes: Vec<String>,
    rtol: String,
    atol: String,
}

impl Case {
    fn read(folder: &Path) -> Result<Case> {
        let path = folder.join("case.json");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let json: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let word =
            |key: &str| json[key].as_str().map(str::to_owned).with_context(|| format!("{}: no {key}", path.display()));
        let opcodes = json["opcodes"].as_array().into_iter().flatten();
        Ok(Case {
            folder: folder.to_path_buf(),
            suite: word("suite")?,
            name: word("name")?,
            opcodes: opcodes.filter_map(Value::as_str).map(str::to_owned).collect(),
            rtol: json["rtol"].to_string(),
            atol: json["atol"].to_string(),
        })
    }
}

/// The command that runs a case and compares its outputs: it fails, and says where they differ, if they do.
pub fn checked_run(xla: &Path, platform: &str, folder: &Path) -> Result<Command> {
    Ok(command(xla, platform, &Case::read(folder)?))
}

fn command(xla: &Path, platform: &str, case: &Case) -> Command {
    let mut command = program(xla, &["run"]);
    command.arg(case.folder.join("module.hlo")).args(["--platform", platform]);
    command.arg("--inputs").arg(case.folder.join("inputs.npz"));
    command.arg("--expect").arg(case.folder.join("expected.npz"));
    command.args(["--rtol", &case.rtol, "--atol", &case.atol]);
    command
}

/// Runs every case, one case per CPU at a time.
fn run_all(xla: &Path, platform: &str, cases: &[Case]) -> Vec<Outcome> {
    let outcome = |case: &Case| {
        let problem = problem(command(xla, platform, case));
        Outcome { suite: case.suite.clone(), name: case.name.clone(), opcodes: case.opcodes.clone(), problem }
    };
    cases.par_iter().map(outcome).collect()
}

/// Failure of a command, on one line; `None` when it exited with 0.
pub fn problem(mut command: Command) -> Option<String> {
    let mut child = match command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Some(error.to_string()),
    };
    let mut stderr = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        // A partial message is better than none.
        let _ = stderr.as_mut().map(|pipe| pipe.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let ended = wait(&mut child);
    let message = reader.join().unwrap_or_default();
    match ended {
        Ok(None) => None,
        Ok(Some(how)) => {
            let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            Some(format!("{how}: {first}"))
        }
        Err(error) => Some(error.to_string()),
    }
}

/// Waits for the end of a process, at most [`TIMEOUT`]; `None` if it exited with 0, otherwise a description of its end.
fn wait(child: &mut Child) -> std::io::Result<Option<String>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((!status.success()).then(|| status.to_string()));
        }
        if start.elapsed() > TIMEOUT {
            child.kill()?;
            child.wait()?;
            return Ok(Some(format!("ended after {} s", TIMEOUT.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a whole corpus through its own judge.
fn judged(corpus: &Path, selection: &Selection) -> Result<()> {
    packages::ensure()?;
    let python = python::with_module("numpy", &["numpy"])?;
    let xla = build::xla()?;
    let corpus = fs::canonicalize(root().join(corpus)).with_context(|| corpus.display().to_string())?;
    let results = root().join("target/corpus-results.json");
    let mut verdict = Verdict::new(not_yet()?);
    for platform in &selection.platforms {
        let mut command = program(&python, &[corpus.join("check.py"), corpus.clone()]);
        command.arg("--json").arg(&results).args(["--limit", "0", "--jobs"]);
        command.arg(std::thread::available_parallelism().map_or(1, usize::from).to_string());
        command.args(selection.suites.iter().flat_map(|suite| ["--suite", suite]));
        command.args(selection.case.iter().flat_map(|text| ["--case", text]));
        let template =
            format!("{} run {{module}} --platform {platform} --inputs {{inputs}} --output {{out}}", xla.display());
        command.arg("--command").arg(template);
        run_program(command)?;
        verdict.add(platform, outcomes(&corpus, &results)?);
    }
    verdict.report(*selection == Selection::default())
}

/// Reads the output of `check.py --json`.
fn outcomes(corpus: &Path, results: &Path) -> Result<Vec<Outcome>> {
    let json: Value = serde_json::from_str(&fs::read_to_string(results)?)?;
    let rows = json.as_array().context("check.py wrote no list")?;
    let outcome = |row: &Value| {
        let word = |key: &str| row[key].as_str().map(str::to_owned).with_context(|| format!("check.py wrote no {key}"));
        let (suite, name) = (word("suite")?, word("name")?);
        let opcodes = Case::read(&corpus.join(&suite).join(&name))?.opcodes;
        let problem = if word("result")? == "pass" { None } else { Some(word("message")?) };
        Ok(Outcome { suite, name, opcodes, problem })
    };
    rows.iter().map(outcome).collect()
}

/// The opcodes of `not-yet.txt`.
fn not_yet() -> Result<Vec<String>> {
    let path = root().join("tests/corpus/not-yet.txt");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// The names of the archives, sorted.
pub fn archives() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("tests/corpus/suites"))? {
        names.extend(entry?.path().file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// Unpacks an archive into files and returns their folder.
pub fn unpack(name: &str) -> Result<PathBuf> {
    let path = root().join(format!("tests/corpus/suites/{name}.zip"));
    let Ok(file) = fs::File::open(&path) else {
        bail!("no suite '{name}' in tests/corpus/suites; there are {}", archives()?.join(", "));
    };
    let folder = root().join("tests/corpus/unpacked").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    zip::ZipArchive::new(file)?.extract(&folder).with_context(|| path.display().to_string())?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_suites_have_archives() {
        let names = archives().unwrap();
        assert!(SUITES.iter().all(|suite| names.iter().any(|name| name == suite)), "{names:?}");
        let error = unpack("no_such_suite").unwrap_err().to_string();
        assert!(error.contains("no suite 'no_such_suite'") && error.contains("models"), "{error}");
    }

    #[test]
    fn a_problem_is_one_line() {
        assert_eq!(problem(program("true", &[""; 0])), None);
        let shell = program("sh", &["-c", "echo >&2; echo 'f32[3] differs' >&2; echo more >&2; exit 1"]);
        assert_eq!(problem(shell).unwrap(), "exit status: 1: f32[3] differs");
        assert!(problem(program("no-such-program-anywhere", &[""; 0])).is_some());
    }
}
