//! XLA:CPU's outcomes, kept in the repository: one archive with an entry for each test file.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use zip::write::SimpleFileOptions;

use super::record::{Kind, Record};
use crate::shell::root;

/// Outcomes of one test file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reference {
    /// The environment that they come from.
    pub subject: String,
    /// Seconds of all tests together.
    pub seconds: f64,
    pub outcomes: BTreeMap<String, Kind>,
}

impl Reference {
    pub fn of(record: &Record) -> Reference {
        let outcomes = record.outcomes.iter().map(|(id, outcome)| (id.clone(), outcome.kind)).collect();
        Reference { subject: record.subject.clone(), seconds: record.seconds(), outcomes }
    }

    /// Names of the tests that passed.
    pub fn passed(&self) -> impl Iterator<Item = &String> {
        self.outcomes.iter().filter(|(_, kind)| **kind == Kind::Passed).map(|(id, _)| id)
    }

    /// The environment, the seconds, then the tests under the name of their outcome.
    fn print(&self) -> String {
        let mut text = format!("{}\n{:.1}\n", self.subject, self.seconds);
        for kind in [Kind::Passed, Kind::Failed, Kind::Skipped, Kind::Crashed, Kind::TimedOut] {
            text += &format!("= {}\n", kind.name());
            for (id, _) in self.outcomes.iter().filter(|(_, of)| **of == kind) {
                text += &format!("{id}\n");
            }
        }
        text
    }

    fn parse(text: &str) -> Option<Reference> {
        let mut lines = text.lines();
        let mut reference = Reference {
            subject: lines.next()?.to_owned(),
            seconds: lines.next()?.parse().ok()?,
            outcomes: BTreeMap::new(),
        };
        let mut kind = None;
        for line in lines {
            match line.strip_prefix("= ") {
                Some(name) => kind = Some(Kind::of(name)?),
                None => drop(reference.outcomes.insert(line.to_owned(), kind?)),
            }
        }
        Some(reference)
    }
}

/// The archive.
pub struct Baseline {
    path: PathBuf,
    /// By `WIDTH/FILE`.
    entries: BTreeMap<String, Reference>,
}

impl Baseline {
    /// Opens the repository's archive.
    pub fn open() -> Result<Baseline> {
        Baseline::read(&root().join("tests/jax/baseline.zip"))
    }

    /// Reads an archive; an empty one where there is none.
    pub fn read(path: &Path) -> Result<Baseline> {
        let mut baseline = Baseline { path: path.to_path_buf(), entries: BTreeMap::new() };
        if !path.exists() {
            return Ok(baseline);
        }
        let mut archive = zip::ZipArchive::new(Cursor::new(fs::read(path)?))?;
        for index in 0..archive.len() {
            let mut entry = archive.by_index(index)?;
            let name = entry.name()?.into_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text)?;
            let reference = Reference::parse(&text);
            let reference = reference.with_context(|| format!("{}: entry {name} is broken", path.display()))?;
            baseline.entries.insert(name, reference);
        }
        Ok(baseline)
    }

    pub fn get(&self, width: &str, file: &str) -> Option<&Reference> {
        self.entries.get(&format!("{width}/{file}"))
    }

    pub fn set(&mut self, width: &str, file: &str, reference: Reference) {
        self.entries.insert(format!("{width}/{file}"), reference);
    }

    /// Writes the archive: the same bytes for the same outcomes.
    pub fn write(&self) -> Result<()> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_level(Some(9));
        for (name, reference) in &self.entries {
            writer.start_file(name, options)?;
            writer.write_all(reference.print().as_bytes())?;
        }
        let bytes = writer.finish()?.into_inner();
        fs::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
        fs::write(&self.path, bytes).with_context(|| self.path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_back_and_files_added() {
        let path = root().join("target/jax-tests/unit/baseline.zip");
        let _ = fs::remove_file(&path);
        let outcomes = [("T::a = b", Kind::Passed), ("T::c", Kind::Skipped), ("T::d", Kind::TimedOut)];
        let outcomes = outcomes.map(|(id, kind)| (id.to_owned(), kind)).into();
        let one = Reference { subject: "jax 0.10.2".to_owned(), seconds: 1.5, outcomes };
        let mut baseline = Baseline::read(&path).unwrap();
        baseline.set("x64", "lax_test", one.clone());
        baseline.write().unwrap();
        let mut baseline = Baseline::read(&path).unwrap();
        baseline.set("x64", "nn_test", Reference::default());
        baseline.write().unwrap();
        let bytes = fs::read(&path).unwrap();
        let baseline = Baseline::read(&path).unwrap();
        assert_eq!(baseline.get("x64", "lax_test"), Some(&one));
        assert_eq!(baseline.get("x64", "nn_test"), Some(&Reference::default()));
        assert_eq!(baseline.get("x32", "lax_test"), None);
        assert_eq!(one.passed().collect::<Vec<_>>(), ["T::a = b"]);
        baseline.write().unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}
