//! `cargo xtask jax-tests`: JAX's own tests on the plugin, compared with XLA:CPU.

mod baseline;
mod causes;
mod compare;
mod environment;
mod folder;
mod junit;
mod options;
mod process;
mod record;
mod report;
mod schedule;

use std::fs;

use anyhow::{Result, bail};
use pico_args::Arguments;

use baseline::{Baseline, Reference};
use compare::Comparison;
use environment::Environment;
use folder::TestFolder;
use options::{Options, TakeUp};
use process::Paths;
use record::{Kind, Record};

pub const HELP: &str = "\
cargo xtask jax-tests FOLDER [FILE...]: runs the tests of a checkout of JAX, at tag jax-v0.10.2 (commit 990e6a0b84), on the PJRT
plugin, one process a file. FILE is a name such as lax or lax_test.py; without one it runs every file but those that need several
devices, several processes, a GPU or PyTorch. Of the tests that XLA:CPU passes (tests/jax/baseline.zip) it prints the share
that the plugin passes, and every miss by cause; the whole list, the records, logs and JUnit files are in target/jax-tests. A run that
was broken off is taken up where it was; a test that crashes or hangs costs one test.

  --baseline        run XLA:CPU instead, and keep its outcomes in tests/jax/baseline.zip
  --platform NAME   platform of the plugin (default: cpu); another one than cpu stands beside XLA:CPU, as xlars_NAME
  --library FILE    the plugin (default: target/release/libpjrt_plugin_xlars.so)
  --python FILE     Python with jax, pytest and what else the tests need (default: python3)
  --workers N       files at a time; they share the processors (default: 2)
  --timeout N       seconds for a test (default: 120)
  --no-x64          JAX_ENABLE_X64=0
  --misses          keep what passed, whatever library it was, and run the rest again
  --again           keep nothing of an earlier run
  --report          run nothing: report on what there is
";

pub fn run(args: Arguments) -> Result<()> {
    let options = Options::parse(args)?;
    let folder = TestFolder::open(&options.folder)?;
    let files = folder.select(&options.files)?;
    fs::create_dir_all(options.output())?;
    if options.take_up != TakeUp::All {
        if options.files.is_empty() {
            folder.left_out().for_each(|(file, reason)| println!("left out: {file} ({reason})"));
        }
        let environment = Environment::prepare(&options)?;
        println!("{}", environment.subject);
        schedule::run(&options, &folder, &environment, &files)?;
    }
    let mut records = Vec::new();
    for file in files {
        let paths = Paths::new(&options.output(), &file);
        let record = Record::read(&paths.record)?;
        // A file that was not begun is none of this run.
        if paths.record.exists() {
            fs::write(paths.record.with_extension("xml"), junit::xml(&file, &record))?;
            records.push((file, record));
        }
    }
    if options.is_baseline() { keep(&options, &records) } else { compare_all(&options, &records) }
}

/// Puts XLA:CPU's outcomes into the repository.
fn keep(options: &Options, records: &[(String, Record)]) -> Result<()> {
    let mut baseline = Baseline::open()?;
    let mut kept = 0;
    for (file, record) in records {
        if !record.is_complete {
            println!("{file} was broken off: not kept");
            continue;
        }
        let counts = [Kind::Passed, Kind::Skipped, Kind::Failed, Kind::Crashed, Kind::TimedOut]
            .map(|kind| format!("{} {}", record.count(kind), kind.name()));
        println!("{file}: {}, {:.1} s", counts.join(", "), record.seconds());
        record.notes.iter().chain(&record.uncollected).for_each(|note| println!("  {note}"));
        baseline.set(options.width(), file, Reference::of(record));
        kept += 1;
    }
    baseline.write()?;
    println!("\ntests/jax/baseline.zip: XLA:CPU's outcomes of {kept} files are kept");
    Ok(())
}

/// Prints the score and the misses of our outcomes.
fn compare_all(options: &Options, records: &[(String, Record)]) -> Result<()> {
    let baseline = Baseline::open()?;
    let compare =
        |(file, record): &(String, Record)| Comparison::new(file, record, baseline.get(options.width(), file));
    let compared: Vec<Comparison> = records.iter().map(compare).collect();
    if compared.is_empty() {
        bail!("none of these files was run on platform {}", options.platform);
    }
    let misses = compared.iter().flat_map(|file| {
        let misses = file.score.iter().flat_map(|score| &score.misses);
        misses.map(|miss| (file.file.as_str(), miss))
    });
    let groups = causes::group(misses);
    print!("{}\n{}", report::table(&compared), report::notes(&compared));
    print!("\n{}", report::causes(&groups));
    let list = options.output().join("misses.txt");
    fs::write(&list, report::misses(&groups))?;
    println!("\nevery miss, with messages: {}", list.display());
    for (file, record) in records.iter().filter(|(_, record)| !record.is_complete) {
        println!("{file} was broken off after {} tests: run again to take it up", record.outcomes.len());
    }
    Ok(())
}
