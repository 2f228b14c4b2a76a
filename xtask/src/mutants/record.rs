//! Records of tests: their times and the mutants that they reach, kept while program and data are the same.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

/// Run of a test without a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub time: Duration,
    pub outcome: Outcome,
}

/// Outcome of a test without a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passes, and reaches these mutants.
    Passes(Vec<u32>),
    Fails,
    /// It was ended after the time that tests of a mutant may take.
    Slow,
}

impl Record {
    /// Writes the record of a test as a line.
    fn line(&self, test: &str) -> String {
        let ids = match &self.outcome {
            Outcome::Passes(ids) => ids.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
            Outcome::Fails => "fails".to_owned(),
            Outcome::Slow => "slow".to_owned(),
        };
        format!("{test} {} {ids}", self.time.as_micros())
    }

    /// Reads the line of a test; `None` if it was not written to its end.
    fn parse(line: &str) -> Option<(String, Record)> {
        let mut words = line.split(' ');
        let (test, time, ids) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        let outcome = match ids {
            "fails" => Outcome::Fails,
            "slow" => Outcome::Slow,
            ids => {
                let ids = ids.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().ok());
                Outcome::Passes(ids.collect::<Option<_>>()?)
            }
        };
        Some((test.to_owned(), Record { time: Duration::from_micros(time), outcome }))
    }
}

/// Records of the tests of a program: a file whose first line names the state of the program and its data.
pub struct Records {
    path: PathBuf,
    known: HashMap<String, Record>,
}

impl Records {
    /// Opens the records of a program whose tests read the files of a package.
    pub fn open(folder: &Path, program: &Path, package: &Path) -> Result<Records> {
        let name = program.file_name().context("a program without a name")?.display().to_string();
        Records::of_state(folder.join(name + ".txt"), &state(program, package)?)
    }

    fn of_state(path: PathBuf, state: &str) -> Result<Records> {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let (first, lines) = text.split_once('\n').unwrap_or_default();
        if first == state {
            // The last line has an end only if it was written as a whole.
            let lines = lines.rsplit_once('\n').map_or("", |(whole, _)| whole);
            return Ok(Records { path, known: lines.lines().filter_map(Record::parse).collect() });
        }
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&path, format!("{state}\n"))?;
        Ok(Records { path, known: HashMap::new() })
    }

    /// Returns the record of a test, unless it was ended sooner than `limit`.
    pub fn get(&self, test: &str, limit: Duration) -> Option<&Record> {
        self.known.get(test).filter(|record| record.outcome != Outcome::Slow || record.time >= limit)
    }

    /// Adds the record of a test to the file.
    pub fn add(&mut self, test: &str, record: &Record) -> Result<()> {
        Ok(writeln!(OpenOptions::new().append(true).open(&self.path)?, "{}", record.line(test))?)
    }
}

/// Returns the times of the last changes of a program and of the files that its tests read, and the number of files.
fn state(program: &Path, package: &Path) -> Result<String> {
    let time = |path: &Path| -> Result<u128> {
        let time = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.modified()?;
        Ok(time.duration_since(SystemTime::UNIX_EPOCH)?.as_nanos())
    };
    let (mut newest, mut count, mut folders) = (0, 0, vec![package.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|extension| extension != "rs") {
                (newest, count) = (time(&path)?.max(newest), count + 1);
            }
        }
    }
    Ok(format!("{} {newest} {count}", time(program)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(1501);

    #[test]
    fn records_are_read_again_until_the_program_changes() {
        let folder = std::env::temp_dir().join(format!("xtask-records-{}", std::process::id()));
        let path = folder.join("suite.txt");
        let open = |state: &str| Records::of_state(path.clone(), state).unwrap();
        let record = |outcome| Record { time: Duration::from_micros(1500), outcome };
        let passes = |ids: &[u32]| record(Outcome::Passes(ids.to_vec()));
        let all = [("a::b", passes(&[3, 70])), ("c", passes(&[])), ("d", record(Outcome::Fails))];
        let mut records = open("1 2 3");
        all.iter().for_each(|(test, record)| records.add(test, record).unwrap());
        records.add("f", &record(Outcome::Slow)).unwrap();
        write!(OpenOptions::new().append(true).open(&path).unwrap(), "e 5 1,2").unwrap();
        let again = open("1 2 3");
        all.iter().for_each(|(test, record)| assert_eq!(again.get(test, LIMIT), Some(record)));
        assert_eq!(again.get("e", LIMIT), None);
        assert_eq!(again.get("f", Duration::from_micros(1500)), Some(&record(Outcome::Slow)));
        assert_eq!(again.get("f", LIMIT), None);
        assert_eq!(open("1 2 4").get("c", LIMIT), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
