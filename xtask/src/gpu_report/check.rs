//! Tries the bundle on the simulated GPU: all steps in small, without Rust on the search path, ended in the middle and
//! resumed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::{bundle, report};
use crate::shell::{line, program, run};
use crate::simulated_gpu::{self, Installed};

/// Steps that have ended when the first run is ended.
const ENDED: usize = 2;

/// Time until then.
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes a bundle with a few executables, and tries it.
pub fn check() -> Result<()> {
    let out = bundle::work();
    let architecture = bundle::ARCHITECTURE.to_owned();
    try_out(&bundle::make(&bundle::Options { out, architecture, ptxas: None, small: true })?)
}

/// Unpacks an archive and runs it twice: until some steps are done, and then the others.
pub fn try_out(archive: &Path) -> Result<()> {
    let folder = bundle::work().join("tried");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut unpack = program("tar", &["--extract", "--file"]);
    unpack.arg(archive).arg("--directory").arg(&folder);
    run(unpack)?;
    let root = only_folder(&folder)?;
    let results = folder.join("results");
    let simulated = [simulated_gpu::library(Installed::Driver)?, simulated_gpu::library(Installed::Libraries)?];
    let before = end_in_the_middle(bundled(&root, &results, &simulated), &results)?;
    println!("\nended by SIGKILL after {} steps", before.len());
    let mut command = bundled(&root, &results, &simulated);
    command.arg("--resume");
    run(command)?;
    let after = finished(&results)?;
    for (step, text) in &before {
        ensure!(after.get(step) == Some(text), "step {step} had ended, and was run again");
    }
    let steps =
        fs::read_dir(&results)?.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_result(path)).count();
    ensure!(after.len() == steps && steps > before.len(), "{} of {steps} steps have ended", after.len());
    println!("{steps} steps, {}", results.join("report.md").display());
    Ok(())
}

fn only_folder(folder: &Path) -> Result<PathBuf> {
    let entry = fs::read_dir(folder)?.next().context("the archive is empty")?;
    Ok(entry?.path())
}

/// The command as typed on the GPU machine, with the simulated driver and libraries, and no Rust.
fn bundled(root: &Path, results: &Path, [driver, libraries]: &[PathBuf; 2]) -> Command {
    let mut command = report(&root.join("run.py"));
    command.current_dir(root).env("PATH", without_rust()).args(["--small", "--out"]).arg(results);
    command.arg("--driver").arg(driver).arg("--libraries").arg(libraries);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO")) {
        command.env_remove(name);
    }
    command
}

/// The search path without the folders that have Rust's programs.
fn without_rust() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_rust = |folder: &PathBuf| ["cargo", "rustc", "rustup"].iter().any(|name| folder.join(name).exists());
    std::env::join_paths(std::env::split_paths(&path).filter(|folder| !has_rust(folder))).unwrap_or_default()
}

/// Starts the run, and ends it, unprepared, when some steps have ended; returns their results.
fn end_in_the_middle(mut command: Command, results: &Path) -> Result<BTreeMap<String, String>> {
    println!("\n$ {} &", line(&command));
    let mut run = Guard(command.stdin(Stdio::null()).spawn()?);
    let started = Instant::now();
    loop {
        let done = finished(results)?;
        if done.len() >= ENDED {
            run.0.kill()?;
            run.0.wait()?;
            // What had ended by the very last moment counts as well.
            return finished(results);
        }
        if let Some(status) = run.0.try_wait()? {
            bail!("the run ended by itself, after {} steps: {status}", done.len());
        }
        ensure!(started.elapsed() < PATIENCE, "{} steps have ended after {} s", done.len(), PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that does not outlive this one's interest.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Results of the steps that have ended, by their names.
fn finished(results: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(results).into_iter().flatten() {
        let path = entry?.path();
        if !is_result(&path) {
            continue;
        }
        // A step of the run that was ended replaces its file when it begins again.
        let text = fs::read_to_string(&path).unwrap_or_default();
        if text.lines().last().is_some_and(|line| line.contains("\"ended\": true")) && text.ends_with('\n') {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.insert(name, text);
        }
    }
    Ok(found)
}

fn is_result(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "jsonl")
}
