//! Runs of tests: once for the mutants that each of them reaches, then for each mutant.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::record::{Outcome, Record, Records};
use crate::shell::output;

/// Memory that a test may take, in KiB: mutants of loops allocate without end.
const MEMORY: u64 = 8 << 20;

/// A test of a program.
pub struct Test {
    program: PathBuf,
    folder: PathBuf,
    pub name: String,
    time: Duration,
    /// Number of mutants that it reaches.
    reached: usize,
    /// Number of mutants that it has caught.
    kills: u32,
}

impl Test {
    /// Time that the test is expected to take for each mutant that it catches. Tests that reach few mutants depend on
    /// each more, until kills are counted.
    fn cost(&self) -> f64 {
        self.time.as_secs_f64() * self.reached as f64 / f64::from(1 + self.kills)
    }
}

/// Tests, and the mutants that they reach.
pub struct Tests {
    root: PathBuf,
    scratch: PathBuf,
    tests: Vec<Test>,
    reached: HashMap<u32, Vec<usize>>,
}

impl Tests {
    /// Runs each test of the programs by itself without a mutant, unless that is on record. Tests that take longer than
    /// `limit` are left out.
    pub fn record(root: &Path, scratch: &Path, programs: Vec<(PathBuf, PathBuf)>, limit: Duration) -> Result<Tests> {
        let mut all = Tests {
            root: root.to_path_buf(),
            scratch: scratch.to_path_buf(),
            tests: Vec::new(),
            reached: HashMap::new(),
        };
        for (program, folder) in programs {
            let mut list = Command::new(&program);
            list.args(["--list", "--format", "terse"]).current_dir(&folder);
            let names = output(list).with_context(|| format!("{} lists no tests", program.display()))?;
            let mut records = Records::open(&scratch.join("reached"), &program, &folder)?;
            for name in names.lines().filter_map(|line| line.strip_suffix(": test")) {
                let (program, folder, name) = (program.clone(), folder.clone(), name.to_owned());
                all.tests.push(Test { program, folder, name, time: Duration::ZERO, reached: 0, kills: 0 });
                all.record_one(all.tests.len() - 1, &mut records, limit)?;
            }
        }
        println!("{} tests reach {} mutants", all.tests.len(), all.reached.len());
        Ok(all)
    }

    fn record_one(&mut self, index: usize, records: &mut Records, limit: Duration) -> Result<()> {
        let name = &self.tests[index].name;
        let record = match records.get(name, limit) {
            Some(record) => record.clone(),
            None => {
                let record = self.run_without_mutant(index, limit)?;
                records.add(name, &record)?;
                record
            }
        };
        // Tests of the sources themselves fail: the rewritten ones do not pass them.
        let Outcome::Passes(ids) = record.outcome else {
            println!("without {name}: it fails without a mutant, or takes longer than {} s", limit.as_secs());
            return Ok(());
        };
        (self.tests[index].time, self.tests[index].reached) = (record.time, ids.len());
        ids.into_iter().for_each(|id| self.reached.entry(id).or_default().push(index));
        Ok(())
    }

    fn run_without_mutant(&self, index: usize, limit: Duration) -> Result<Record> {
        let path = self.scratch.join("reached.txt");
        drop(fs::remove_file(&path));
        let start = Instant::now();
        let set = ("XLA_MUTANTS_REACHED", path.display().to_string());
        let fails = self.run(&[index], set, limit)?;
        let time = start.elapsed();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let ids = text.lines().filter_map(|line| line.parse().ok()).collect();
        let outcome = match fails {
            false => Outcome::Passes(ids),
            true if time > limit => Outcome::Slow,
            true => Outcome::Fails,
        };
        Ok(Record { time, outcome })
    }

    /// Whether a test notices a mutant. The tests that reach it run cheapest first, in groups of doubling size, as far
    /// as they fit into `time`.
    pub fn notice(&mut self, id: u32, time: Duration) -> Result<bool> {
        let mut order = self.reached.get(&id).cloned().unwrap_or_default();
        order.sort_by(|&a, &b| self.tests[a].cost().total_cmp(&self.tests[b].cost()));
        let mut sum = Duration::ZERO;
        order.retain(|&index| {
            let fits = sum + self.tests[index].time <= time;
            sum += if fits { self.tests[index].time } else { Duration::ZERO };
            fits
        });
        let mut rest = order.as_slice();
        let mut size = 1;
        while let Some(&first) = rest.first() {
            let same = rest.iter().take(size).take_while(|&&i| self.tests[i].program == self.tests[first].program);
            let (group, others) = rest.split_at(same.count());
            let usual: Duration = group.iter().map(|&index| self.tests[index].time).sum();
            if self.run(group, ("XLA_MUTANT", id.to_string()), usual * 10 + Duration::from_secs(5))? {
                self.credit(group);
                return Ok(true);
            }
            (rest, size) = (others, size * 2);
        }
        Ok(false)
    }

    /// Counts the tests of a group that failed.
    fn credit(&mut self, group: &[usize]) {
        let said = fs::read_to_string(self.scratch.join("output.txt")).unwrap_or_default();
        for &index in group {
            let test = &mut self.tests[index];
            test.kills += u32::from(group.len() == 1 || said.contains(&format!("test {} ... FAILED", test.name)));
        }
    }

    /// Runs tests of one program; returns whether one fails, or takes too long.
    fn run(&self, group: &[usize], set: (&str, String), limit: Duration) -> Result<bool> {
        let test = &self.tests[group[0]];
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY}; ulimit -c 0; exec \"$0\" \"$@\"")]).arg(&test.program);
        command.arg("--exact").args(group.iter().map(|&index| &self.tests[index].name));
        command.env("CARGO_MANIFEST_DIR", &test.folder).env("INSTA_UPDATE", "no").env(set.0, set.1);
        // A case that fails for a mutant is none of the tests that are there for the others.
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
        command.env("INSTA_WORKSPACE_ROOT", &self.root).current_dir(&test.folder);
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(File::create(self.scratch.join("output.txt"))?);
        let mut child = command.spawn().with_context(|| format!("cannot run {}", test.program.display()))?;
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(!status.success());
            }
            if start.elapsed() > limit {
                child.kill()?;
                child.wait()?;
                return Ok(true);
            }
            sleep(Duration::from_millis(1));
        }
    }
}
