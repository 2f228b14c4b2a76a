//! Records of tests: the time of each and the mutants that it reaches, kept while its program and its data are the same.

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
    /// Mutants that the test reaches; `None` if it fails.
    pub reached: Option<Vec<u32>>,
}

impl Record {
    /// Writes the record of a test as a line.
    fn line(&self, test: &str) -> String {
        let ids = self
            .reached
            .as_ref()
            .map_or("fails".to_owned(), |ids| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
        format!("{test} {} {ids}", self.time.as_micros())
    }

    /// Reads the line of a test; `None` if it was not written to its end.
    fn parse(line: &str) -> Option<(String, Record)> {
        let mut words = line.split(' ');
        let (test, time, ids) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        let ids = match ids {
            "fails" => None,
            ids => Some(ids.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().ok()).collect::<Option<_>>()?),
        };
        Some((test.to_owned(), Record { time: Duration::from_micros(time), reached: ids }))
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

    pub fn get(&self, test: &str) -> Option<&Record> {
        self.known.get(test)
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

    #[test]
    fn records_are_read_again_until_the_program_changes() {
        let folder = std::env::temp_dir().join(format!("xtask-records-{}", std::process::id()));
        let path = folder.join("suite.txt");
        let open = |state: &str| Records::of_state(path.clone(), state).unwrap();
        let record = |reached| Record { time: Duration::from_micros(1500), reached };
        let all = [("a::b", record(Some(vec![3, 70]))), ("c", record(Some(Vec::new()))), ("d", record(None))];
        let mut records = open("1 2 3");
        all.iter().for_each(|(test, record)| records.add(test, record).unwrap());
        write!(OpenOptions::new().append(true).open(&path).unwrap(), "e 5 1,2").unwrap();
        let again = open("1 2 3");
        all.iter().for_each(|(test, record)| assert_eq!(again.get(test), Some(record)));
        assert_eq!(again.get("e"), None);
        assert_eq!(open("1 2 4").get("c"), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
