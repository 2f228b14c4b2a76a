//! Results of mutants: kept for the next run, and printed by folder.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use mutants::Mutant;

use crate::shell::root;

/// Mutants that runs have settled, by the text of their file: a list that later runs read.
pub struct Settled {
    path: PathBuf,
    known: BTreeSet<String>,
    hashes: HashMap<String, u64>,
}

impl Settled {
    /// Opens the list of mutants that tests caught.
    pub fn caught(folder: &Path) -> Settled {
        Settled::open(folder.join("caught.txt"))
    }

    /// Opens the list of mutants that rustc rejects.
    pub fn rejected(folder: &Path) -> Settled {
        Settled::open(folder.join("rejected.txt"))
    }

    fn open(path: PathBuf) -> Settled {
        let text = fs::read_to_string(&path).unwrap_or_default();
        Settled { path, known: text.lines().map(str::to_owned).collect(), hashes: HashMap::new() }
    }

    fn key(&mut self, mutant: &Mutant) -> Result<String> {
        if !self.hashes.contains_key(&mutant.file) {
            let mut hasher = DefaultHasher::new();
            fs::read(root().join(&mutant.file))?.hash(&mut hasher);
            self.hashes.insert(mutant.file.clone(), hasher.finish());
        }
        Ok(format!("{:016x} {}", self.hashes[&mutant.file], mutant.name))
    }

    /// Whether the list has the mutant, with the text that its file has now.
    pub fn has(&mut self, mutant: &Mutant) -> Result<bool> {
        let key = self.key(mutant)?;
        Ok(self.known.contains(&key))
    }

    /// Adds a mutant to the list.
    pub fn add(&mut self, mutant: &Mutant) -> Result<()> {
        let key = self.key(mutant)?;
        writeln!(OpenOptions::new().create(true).append(true).open(&self.path)?, "{key}")?;
        Ok(())
    }
}

/// Writes the names of the survivors, also while mutants are left to run.
pub fn write_missed(folder: &Path, survivors: &[&Mutant]) -> Result<()> {
    write_names(&folder.join("missed.txt"), survivors)
}

/// Writes the names of the mutants that no test reaches.
pub fn write_unreached(folder: &Path, mutants: &[&Mutant]) -> Result<()> {
    write_names(&folder.join("unreached.txt"), mutants)
}

fn write_names(path: &Path, mutants: &[&Mutant]) -> Result<()> {
    let names: Vec<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    Ok(fs::write(path, names.join("\n") + "\n")?)
}

/// Prints the share of survivors of each folder and their names, and fails when it is above the limit.
pub fn report(folder: &Path, run: &[&Mutant], survivors: &[&Mutant], limit: f64) -> Result<()> {
    let mut folders: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let of = |mutant: &Mutant| mutant.file.match_indices('/').nth(2).map_or(mutant.file.len(), |(end, _)| end);
    run.iter().for_each(|mutant| folders.entry(&mutant.file[..of(mutant)]).or_default().1 += 1);
    survivors.iter().for_each(|mutant| folders.entry(&mutant.file[..of(mutant)]).or_default().0 += 1);
    write_missed(folder, survivors)?;
    let percent = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
    survivors.iter().for_each(|mutant| println!("  {}", mutant.name));
    for (name, (part, all)) in folders {
        println!("{name}: {part} of {all} mutants survive, {:.1} %", percent(part, all));
    }
    if run.is_empty() {
        bail!("no mutant was built");
    }
    if percent(survivors.len(), run.len()) > limit {
        bail!("more than {limit} % survive: add tests, or name mutants that change nothing in .cargo/mutants.toml");
    }
    Ok(())
}
