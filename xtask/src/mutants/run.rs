//! Runs of tests: once for the mutants that each of them reaches, then for each mutant.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mutants::Mutant;

use super::record::{Outcome, Record, Records};
use crate::shell::output;

/// Memory that a test may take, in KiB: mutants of loops allocate without end.
const MEMORY: u64 = 8 << 20;

/// Bytes of a test thread's stack: the build is not optimized.
const STACK: &str = "33554432";

/// Platforms whose conformance suite runs kernels.
const PLATFORMS: [&str; 2] = ["cpu", "gpu-emulated"];
/// Conformance levels that compare results, and the segments of a case's name that the cases of a test share.
const LEVELS: [(&str, usize); 3] = [("2", 2), ("3", 2), ("5", 3)];

/// Kind of a program that runs tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Tests of Rust.
    Tests,
    /// The conformance suite: a test is some cases of one platform, `PLATFORM:CASES`.
    Conformance,
}

/// A program that runs tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub kind: Kind,
    pub path: PathBuf,
    /// Folder of its package.
    pub folder: PathBuf,
}

impl Program {
    /// Lists the tests.
    fn names(&self) -> Result<Vec<String>> {
        let list = |args: &[&str]| {
            let mut list = Command::new(&self.path);
            list.args(args).current_dir(&self.folder);
            output(list).with_context(|| format!("{} lists no tests", self.path.display()))
        };
        if self.kind == Kind::Tests {
            let text = list(&["--list", "--format", "terse"])?;
            return Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect());
        }
        let mut names = BTreeSet::new();
        for (level, segments) in LEVELS {
            let text = list(&["conformance", PLATFORMS[0], "--quick", "--list", "--level", level])?;
            for case in text.lines().filter_map(|line| line.split_whitespace().next()) {
                let end = case.match_indices('/').nth(segments - 1).map_or(case.len(), |(at, _)| at + 1);
                names.extend(PLATFORMS.map(|platform| format!("{platform}:{}", &case[..end])));
            }
        }
        Ok(names.into_iter().collect())
    }

    /// Arguments that run tests.
    fn args(&self, names: &[&str]) -> Vec<String> {
        let args = match (self.kind, names) {
            (Kind::Conformance, [name]) => {
                let (platform, cases) = name.split_once(':').unwrap_or((PLATFORMS[0], name));
                let level = cases.split('/').next().unwrap_or_default();
                vec!["conformance", platform, "--quick", "--jobs", "1", "--level", level, "--filter", cases]
            }
            _ => [&["--exact"], names].concat(),
        };
        args.into_iter().map(str::to_owned).collect()
    }
}

/// A test of a program.
pub struct Test {
    program: Program,
    pub name: String,
    time: Duration,
    /// Number of mutants that the test ran for, and number of mutants that it caught.
    runs: u32,
    kills: u32,
}

impl Test {
    /// Time that the test is expected to take for each mutant that it catches.
    fn cost(&self) -> f64 {
        self.time.as_secs_f64() * f64::from(2 + self.runs) / f64::from(1 + self.kills)
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
    pub fn record(root: &Path, scratch: &Path, programs: Vec<Program>, limit: Duration) -> Result<Tests> {
        let mut all = Tests {
            root: root.to_path_buf(),
            scratch: scratch.to_path_buf(),
            tests: Vec::new(),
            reached: HashMap::new(),
        };
        for program in programs {
            let mut records = Records::open(&scratch.join("reached"), &program.path, &program.folder)?;
            for name in program.names()? {
                all.tests.push(Test { program: program.clone(), name, time: Duration::ZERO, runs: 0, kills: 0 });
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
        self.tests[index].time = record.time;
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

    /// Returns the mutants that no test reaches.
    pub fn unreached<'m>(&self, mutants: &[&'m Mutant]) -> Vec<&'m Mutant> {
        mutants.iter().copied().filter(|mutant| !self.reached.contains_key(&mutant.id)).collect()
    }

    /// Whether a test notices a mutant. The tests that reach it run in groups of doubling size, as far as they fit into
    /// `time`; first the tests with the least time per mutant that they have caught.
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
            let program = &self.tests[first].program;
            let most = if program.kind == Kind::Tests { size } else { 1 };
            let same = rest.iter().take(most).take_while(|&&i| self.tests[i].program == *program);
            let (group, others) = rest.split_at(same.count());
            let usual: Duration = group.iter().map(|&index| self.tests[index].time).sum();
            let is_noticed = self.run(group, ("XLA_MUTANT", id.to_string()), usual * 10 + Duration::from_secs(5))?;
            self.count(group, is_noticed);
            if is_noticed {
                return Ok(true);
            }
            (rest, size) = (others, group.len() * 2);
        }
        Ok(false)
    }

    /// Counts a run of the tests of a group, and its failures.
    fn count(&mut self, group: &[usize], is_noticed: bool) {
        let said = fs::read_to_string(self.scratch.join("output.txt")).unwrap_or_default();
        for &index in group {
            let test = &mut self.tests[index];
            let fails = group.len() == 1 || said.contains(&format!("test {} ... FAILED", test.name));
            test.runs += 1;
            test.kills += u32::from(is_noticed && fails);
        }
    }

    /// Runs tests of one program; returns whether one fails, or takes too long.
    fn run(&self, group: &[usize], set: (&str, String), limit: Duration) -> Result<bool> {
        let test = &self.tests[group[0]];
        let mut command = Command::new("sh");
        let Program { path, folder, .. } = &test.program;
        let names: Vec<&str> = group.iter().map(|&index| self.tests[index].name.as_str()).collect();
        command.args(["-c", &format!("ulimit -v {MEMORY}; ulimit -c 0; exec \"$0\" \"$@\"")]).arg(path);
        command.args(test.program.args(&names)).env("CARGO_MANIFEST_DIR", folder);
        command.env("INSTA_UPDATE", "no").env("RUST_MIN_STACK", STACK).env(set.0, set.1);
        // A case that fails for a mutant is none of the tests that are there for the others.
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
        command.env("INSTA_WORKSPACE_ROOT", &self.root).current_dir(folder);
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(File::create(self.scratch.join("output.txt"))?);
        let mut child = command.spawn().with_context(|| format!("cannot run {}", path.display()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_of_a_platform_run_by_their_filter_and_tests_by_their_names() {
        let of = |kind| Program { kind, path: PathBuf::new(), folder: PathBuf::new() };
        let cases = of(Kind::Conformance).args(&["gpu-emulated:5/idioms/softmax/"]).join(" ");
        assert_eq!(cases, "conformance gpu-emulated --quick --jobs 1 --level 5 --filter 5/idioms/softmax/");
        assert_eq!(of(Kind::Tests).args(&["a::b", "c"]), ["--exact", "a::b", "c"]);
    }
}
