//! Runs test files, several at a time, from where an earlier run has left them.

use std::collections::VecDeque;
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use super::environment::Environment;
use super::folder::TestFolder;
use super::options::{Options, TakeUp};
use super::process::{self, Paths};
use super::record::{Kind, Record};

/// Runs test files; stops at the first one that cannot be run at all.
pub fn run(options: &Options, folder: &TestFolder, environment: &Environment, files: &[String]) -> Result<()> {
    let queue: Mutex<VecDeque<&String>> = Mutex::new(files.iter().collect());
    let work = |worker: usize| loop {
        let next = queue.lock().map_err(|_| anyhow!("another worker died"))?.pop_front();
        let Some(file) = next else { return Ok(()) };
        run_file(options, folder, environment, file, worker).with_context(|| file.clone())?;
    };
    thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..options.workers).map(|worker| scope.spawn(move || work(worker))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("a worker died"))?)
    })
}

fn run_file(
    options: &Options,
    folder: &TestFolder,
    environment: &Environment,
    file: &str,
    worker: usize,
) -> Result<()> {
    let paths = Paths::new(&options.output(), file);
    if !take_up(&paths, &environment.subject, options.take_up)? {
        return Ok(());
    }
    let start = Instant::now();
    let test_file = format!("tests/{file}.py");
    process::run(&paths, options.timeout, || {
        let mut command = environment.command(&folder.root);
        command.env("JAX_TESTS_RECORD", &paths.record);
        command.env("JAX_TESTS_WORKER", format!("{worker}/{}", options.workers));
        // Without `-P` Python would take the sources of a checkout instead of the JAX that is installed.
        command.args(["-P", "-m", "pytest"]);
        // The options of JAX's own runs, then the recorder, which watches time limits and crashes. Nothing is captured:
        // the output of native code reaches the log even after a crash, and the tests of `debug.print` read it from the
        // descriptor of standard output.
        command.args(["--rootdir=.", "--override-ini=addopts=", "--import-mode=importlib", "-q"]);
        command.args(["-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "jax_tests_recorder"]);
        command.args(["--tb=short", "--capture=no", &test_file]);
        command
    })?;
    let record = Record::read(&paths.record)?;
    let seconds = start.elapsed().as_secs_f64();
    let (tests, passed) = (record.outcomes.len(), record.count(Kind::Passed));
    println!("{file}: {passed} of {tests} passed, {} skipped, {seconds:.0} s", record.count(Kind::Skipped));
    Ok(())
}

/// Prepares a record for the tests to run; false if none are left.
fn take_up(paths: &Paths, subject: &str, choice: TakeUp) -> Result<bool> {
    let record = Record::read(&paths.record)?;
    let is_same = record.subject == subject;
    let keeps_passed = match choice {
        TakeUp::SameLibrary if is_same => return Ok(!record.is_complete),
        TakeUp::SameLibrary | TakeUp::Nothing => false,
        TakeUp::Passed => true,
        TakeUp::All => return Ok(false),
    };
    if paths.log.exists() {
        fs::remove_file(&paths.log)?;
    }
    record.restart(&paths.record, subject, |outcome| keeps_passed && outcome.kind == Kind::Passed)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::jax_tests::record::append;
    use crate::shell::root;

    #[test]
    fn an_earlier_run_is_taken_up_as_chosen() {
        let folder = root().join("target/jax-tests/unit/take_up");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let paths = Paths::new(&folder, "x_test");
        let taken = |choice: TakeUp, subject: &str| {
            let is_left = take_up(&paths, subject, choice).unwrap();
            let record = Record::read(&paths.record).unwrap();
            let ids: Vec<String> = record.outcomes.into_keys().collect();
            (is_left, ids.join(" "))
        };
        let outcome = |id: &str, kind: Kind| json!({"id": id, "outcome": kind.name(), "seconds": 1});
        // Nothing there: the record is begun.
        assert_eq!(taken(TakeUp::SameLibrary, "one"), (true, String::new()));
        append(&paths.record, &outcome("a", Kind::Passed)).unwrap();
        append(&paths.record, &outcome("b", Kind::Failed)).unwrap();
        assert_eq!(taken(TakeUp::SameLibrary, "one"), (true, "a b".to_owned()));
        append(&paths.record, &json!({"finished": 1})).unwrap();
        assert_eq!(taken(TakeUp::SameLibrary, "one"), (false, "a b".to_owned()));
        assert_eq!(taken(TakeUp::All, "two"), (false, "a b".to_owned()));
        assert_eq!(taken(TakeUp::Passed, "two"), (true, "a".to_owned()));
        // Another library: the outcomes of the first one no longer count.
        assert_eq!(taken(TakeUp::SameLibrary, "three"), (true, String::new()));
        append(&paths.record, &outcome("a", Kind::Passed)).unwrap();
        assert_eq!(taken(TakeUp::Nothing, "three"), (true, String::new()));
    }
}
