//! Runs a test file to its end: a process that dies fails its current test, and a new process continues after it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::record::{self, Kind, Outcome, Record};

/// More crashes than this in a file, and the rest of it is left.
const MOST_CRASHES: usize = 100;
/// Grace period after the time limit of a test; a process without a new record by then is killed.
const PATIENCE: Duration = Duration::from_secs(120);

/// The files that belong to the run of one test file.
pub struct Paths {
    pub record: PathBuf,
    /// Standard output and error of its processes.
    pub log: PathBuf,
    /// Tracebacks of the last process, if it died.
    crash: PathBuf,
}

impl Paths {
    pub fn new(output: &Path, name: &str) -> Paths {
        let stem = name.replace('/', ".");
        let path = |extension: &str| output.join(format!("{stem}.{extension}"));
        Paths { record: path("jsonl"), log: path("log"), crash: path("jsonl.crash") }
    }
}

/// Runs the rest of a test file; `command` makes a process that runs all tests without an outcome in the record.
pub fn run(paths: &Paths, limit: Duration, command: impl Fn() -> Command) -> Result<()> {
    let mut crashes = Record::read(&paths.record)?.count(Kind::Crashed);
    loop {
        let before = Record::read(&paths.record)?;
        if before.is_complete {
            return Ok(());
        }
        record::append(&paths.record, &json!({ "process": crashes }))?;
        let log_start = fs::metadata(&paths.log).map_or(0, |data| data.len());
        let ended = watch(command(), paths, limit)?;
        let after = Record::read(&paths.record)?;
        let death = Death::read(&ended, paths, log_start);
        match (&after.open, after.finished) {
            (None, Some(code)) if record::is_done(code) => {
                // Pytest has said how it ends; a process that then dies, or stays, did not end well.
                if ended.status.and_then(|status| status.code()) != i32::try_from(code).ok() {
                    note(paths, &format!("after the last test: {}", death.message))?;
                }
                return Ok(());
            }
            (None, Some(code)) => {
                note(paths, &format!("pytest ended with code {code}"))?;
                return complete(paths);
            }
            (Some(id), _) => {
                record::append(&paths.record, &record::outcome_line(id, &death.outcome(limit)))?;
            }
            (None, None) => {
                note(paths, &format!("outside of tests: {}", death.message))?;
                if after.outcomes.len() == before.outcomes.len() {
                    return complete(paths);
                }
            }
        }
        crashes += 1;
        if crashes > MOST_CRASHES {
            note(paths, &format!("the rest was left after {MOST_CRASHES} crashes"))?;
            return complete(paths);
        }
    }
}

fn note(paths: &Paths, text: &str) -> Result<()> {
    record::append(&paths.record, &json!({ "note": text }))
}

fn complete(paths: &Paths) -> Result<()> {
    record::append(&paths.record, &json!({ "complete": true }))
}

/// End of a process; no status when it had to be killed because it wrote nothing any more.
struct Ended {
    status: Option<ExitStatus>,
}

/// Starts a process and waits for its end, or for the end of patience with it.
fn watch(mut command: Command, paths: &Paths, limit: Duration) -> Result<Ended> {
    let open = fs::OpenOptions::new().append(true).create(true).open(&paths.log);
    let log = open.with_context(|| paths.log.display().to_string())?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
    wait(&mut child, &paths.record, limit + PATIENCE).with_context(|| format!("cannot wait for {program}"))
}

fn wait(child: &mut Child, record: &Path, patience: Duration) -> Result<Ended> {
    let mut last = (Instant::now(), 0);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended { status: Some(status) });
        }
        let length = fs::metadata(record).map_or(0, |data| data.len());
        if length != last.1 {
            last = (Instant::now(), length);
        } else if last.0.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            return Ok(Ended { status: None });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Cause of a process's death, from its own output and its exit status.
struct Death {
    is_timeout: bool,
    message: String,
    trace: String,
}

impl Death {
    fn read(ended: &Ended, paths: &Paths, log_start: u64) -> Death {
        let text = |path: &Path, start: u64| {
            let bytes = fs::read(path).unwrap_or_default();
            let start = usize::try_from(start).unwrap_or(0);
            String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
        };
        let death = Death::of(ended, &text(&paths.crash, 0), &text(&paths.log, log_start));
        // It is there if the process came so far, and no use any more.
        let _ = fs::remove_file(&paths.crash);
        death
    }

    fn of(ended: &Ended, crash: &str, log: &str) -> Death {
        let status = match ended.status {
            Some(status) => status.to_string(),
            None => "killed, as it wrote nothing any more".to_owned(),
        };
        // A panic prints two lines: the place, then the message.
        let panic = log.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
        let fatal = crash.lines().find(|line| line.starts_with("Fatal") || line.starts_with("Timeout"));
        let told = panic.or(fatal).map(|line| format!(": {line}")).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(30).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        let head: Vec<&str> = crash.lines().take(60).collect();
        Death {
            is_timeout: ended.status.is_none() || crash.starts_with("Timeout"),
            message: format!("{status}{told}"),
            trace: format!("{}\n-- log:\n{}", head.join("\n"), tail.join("\n")),
        }
    }

    fn outcome(&self, limit: Duration) -> Outcome {
        let (message, trace) = (self.message.clone(), self.trace.clone());
        match self.is_timeout {
            true => Outcome { kind: Kind::TimedOut, seconds: limit.as_secs_f64(), message, trace },
            false => Outcome { kind: Kind::Crashed, seconds: 0.0, message, trace },
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::shell::{program, root};

    /// A fake pytest: runs those of the tests `a b c d` without an outcome in the record, some with a fault.
    const FAKE: &str = r#"
        record=$1; fault=$2
        for test in a b c d; do
            grep -q "\"id\":\"$test\"" "$record" && continue
            echo "{\"start\":\"$test\"}" >> "$record"
            case $fault-$test in
                abort-b) echo "thread 'x' panicked at lib.rs:1:1:" ; echo "index out of bounds" ; kill -ABRT $$ ;;
                hang-c) echo "Timeout (0:02:00)!" > "$record.crash"; exit 1 ;;
            esac
            echo "{\"id\":\"$test\",\"outcome\":\"passed\",\"seconds\":0.25}" >> "$record"
        done
        [ "$fault" = outside ] && exit 3
        echo '{"finished":0}' >> "$record"
        [ "$fault" = late ] && kill -SEGV $$
        exit 0
    "#;

    fn run_fake(fault: &str, first: &str) -> Record {
        let folder = root().join("target/jax-tests/unit").join(fault);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let paths = Paths::new(&folder, "third/x_test");
        fs::write(&paths.record, first).unwrap();
        let record = paths.record.clone();
        let command = || program("sh", &["-c", FAKE, "sh", &record.display().to_string(), fault]);
        run(&paths, Duration::from_secs(5), command).unwrap();
        Record::read(&paths.record).unwrap()
    }

    #[test]
    fn a_crash_costs_one_test() {
        let record = run_fake("abort", "");
        assert_eq!((record.is_complete, record.outcomes.len(), record.count(Kind::Passed)), (true, 4, 3));
        let crash = &record.outcomes["b"];
        assert_eq!(crash.kind, Kind::Crashed);
        assert!(crash.message.contains("SIGABRT") && crash.message.ends_with(": index out of bounds"), "{crash:?}");
    }

    #[test]
    fn a_hang_costs_one_test() {
        let record = run_fake("hang", "");
        assert_eq!((record.is_complete, record.count(Kind::Passed)), (true, 3));
        assert_eq!((record.outcomes["c"].kind, record.outcomes["c"].seconds), (Kind::TimedOut, 5.0));
    }

    #[test]
    fn a_run_is_taken_up_behind_what_has_an_outcome() {
        // The run before was broken off in test b: that is no crash.
        let first = "{\"id\":\"a\",\"outcome\":\"failed\",\"seconds\":1}\n{\"start\":\"b\"}\n";
        let record = run_fake("none", first);
        assert_eq!((record.outcomes["a"].kind, record.outcomes["b"].kind), (Kind::Failed, Kind::Passed));
        assert_eq!((record.is_complete, record.outcomes.len(), record.seconds()), (true, 4, 1.75));
    }

    #[test]
    fn deaths_outside_of_tests_are_noted() {
        let record = run_fake("late", "");
        assert!(record.notes.len() == 1 && record.notes[0].starts_with("after the last test: signal"), "{record:?}");
        let record = run_fake("outside", "");
        assert!(record.is_complete && record.notes.iter().all(|note| note.contains("exit status: 3")), "{record:?}");
    }

    #[test]
    fn a_process_that_writes_nothing_is_killed() {
        let mut child = program("sleep", &["60"]).spawn().unwrap();
        let ended = wait(&mut child, Path::new("no/such/record"), Duration::from_millis(30)).unwrap();
        assert!(ended.status.is_none());
        assert!(Death::of(&ended, "", "").is_timeout);
        let killed = Ended { status: Some(ExitStatus::from_raw(9)) };
        assert!(Death::of(&killed, "", "").message.contains("SIGKILL"));
    }
}
