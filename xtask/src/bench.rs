//! `cargo xtask bench`: times the benchmark programs, against XLA where that can be had.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pico_args::Arguments;
use serde_json::Value;

use crate::shell::{capture, program, root, run as run_program};
use crate::{build, corpus, packages, python};

pub const HELP: &str = "\
cargo xtask bench [NAME...] [--own] [-- OPTION...]

Times programs with `xla bench --json`: those named, or all. When ../shared/bench is there, its compare.py pairs each
with XLA:CPU (it makes a Python environment with jaxlib under target/ when python3 has none), and the options after
`--` are its own (`--pairs 1 --min-seconds 0.2`). Else, or with --own, the programs of tests/corpus are timed alone,
and their outputs compared with the sums of XLA's outputs; the options after `--` go to `xla bench`.
";

pub fn run(mut args: Arguments) -> Result<()> {
    let own = args.contains("--own");
    let words: Vec<String> = args.finish().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (names, options) = split(&words);
    if let Some(option) = names.iter().find(|name| name.starts_with('-')) {
        bail!("unknown option '{option}'; those of the programs that are run come after `--`");
    }
    packages::ensure()?;
    let xla = build::xla()?;
    let compare = root().join("../shared/bench/compare.py");
    if own || !compare.exists() { alone(&xla, names, options) } else { against_xla(&xla, &compare, names, options) }
}

/// Splits words at `--`.
fn split(words: &[String]) -> (&[String], &[String]) {
    match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[]),
    }
}

fn against_xla(xla: &Path, compare: &Path, names: &[String], options: &[String]) -> Result<()> {
    let requirements = compare.with_file_name("requirements.txt").display().to_string();
    let python = python::with_module("jaxlib", &["-r", &requirements])?;
    let ours = format!(
        "{} bench {{program}} --platform cpu --inputs-seed {{seed}} --threads {{threads}} --reps {{reps}} \
         --min-seconds {{min_seconds}} --json",
        xla.display()
    );
    let mut command = program(&python, &[compare.as_os_str(), "--ours".as_ref(), ours.as_ref()]);
    command.arg("--python").arg(&python);
    if !names.is_empty() {
        command.arg("--only").args(names);
    }
    command.args(options);
    run_program(command)
}

fn alone(xla: &Path, names: &[String], options: &[String]) -> Result<()> {
    let programs = Programs::unpack()?;
    let chosen: Vec<&Program> = match names {
        [] => programs.all().collect(),
        names => names.iter().map(|name| programs.get(name)).collect::<Result<_>>()?,
    };
    println!("\n{}", Measurement::HEAD);
    let mut bad = 0;
    for program in chosen {
        match program.measure(xla, options) {
            Ok(measured) => println!("{}", measured.row(program)),
            Err(error) => {
                bad += 1;
                println!("{:<24} {error:#}", program.name);
            }
        }
    }
    if bad > 0 {
        bail!("{bad} programs failed or returned other outputs than XLA");
    }
    Ok(())
}

/// The benchmark programs of `tests/corpus`, by name.
pub struct Programs(BTreeMap<String, Program>);

/// A benchmark program with the facts of its manifest.
pub struct Program {
    pub name: String,
    pub description: String,
    path: PathBuf,
    instructions: u64,
    flops: Option<f64>,
    tolerance: f64,
    outputs: Vec<Sums>,
}

/// Checksums of an output: sums over its finite elements, and the count of the others.
#[derive(Clone, Copy)]
struct Sums {
    sum: f64,
    abs_sum: f64,
    wsum: f64,
    nonfinite: f64,
}

impl Programs {
    /// Lays the programs out as files and reads their manifest.
    pub fn unpack() -> Result<Programs> {
        let folder = corpus::unpack("bench")?;
        let manifest = read_json(&folder.join("manifest.json"))?;
        let outputs = read_json(&folder.join("outputs.json"))?;
        let entries = manifest["programs"].as_array().context("the manifest lists no programs")?;
        let programs = entries.iter().map(|entry| Program::read(&folder, entry, &outputs));
        Ok(Programs(programs.map(|read| read.map(|program| (program.name.clone(), program))).collect::<Result<_>>()?))
    }

    fn all(&self) -> impl Iterator<Item = &Program> {
        self.0.values()
    }

    pub fn get(&self, name: &str) -> Result<&Program> {
        let names = || self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        self.0.get(name).with_context(|| format!("no program '{name}'; there are {}", names()))
    }
}

impl Program {
    fn read(folder: &Path, entry: &Value, outputs: &Value) -> Result<Program> {
        let name = entry["name"].as_str().context("a program of the manifest has no name")?.to_owned();
        let sums = outputs[&name].as_array().with_context(|| format!("outputs.json has no {name}"))?;
        Ok(Program {
            description: entry["description"].as_str().unwrap_or_default().to_owned(),
            path: folder.join(format!("{name}.hlo")),
            instructions: entry["hlo_instructions"].as_u64().unwrap_or_default(),
            flops: entry["flops"].as_f64(),
            tolerance: entry["tolerance"]
                .as_f64()
                .with_context(|| format!("the manifest has no tolerance of {name}"))?,
            outputs: sums.iter().map(Sums::read).collect::<Result<_>>()?,
            name,
        })
    }

    /// Compiles and times the program, and compares its outputs with XLA's.
    pub fn measure(&self, xla: &Path, options: &[String]) -> Result<Measurement> {
        let mut command = program(xla, &["bench"]);
        command.arg(&self.path).args(["--platform", "cpu", "--inputs-seed", "0", "--json"]).args(options);
        let text = capture(command)?;
        let json: Value = serde_json::from_str(text.trim()).context("`xla bench --json` printed no JSON")?;
        if let Some(error) = json["error"].as_str() {
            bail!("{error}");
        }
        let outputs = json["outputs"].as_array().context("`xla bench --json` gave no outputs")?;
        self.compare(&outputs.iter().map(Sums::read).collect::<Result<Vec<_>>>()?)?;
        let number = |key: &str| json[key].as_f64().with_context(|| format!("`xla bench --json` gave no {key}"));
        Ok(Measurement { compile_ms: number("compile_ms")?, run_us: number("run_us")? })
    }

    fn compare(&self, actual: &[Sums]) -> Result<()> {
        if actual.len() != self.outputs.len() {
            bail!("{} outputs, XLA returned {}", actual.len(), self.outputs.len());
        }
        for (index, (ours, xla)) in actual.iter().zip(&self.outputs).enumerate() {
            let allowed = self.tolerance * xla.abs_sum;
            let pairs =
                [("sum", ours.sum, xla.sum), ("abs_sum", ours.abs_sum, xla.abs_sum), ("wsum", ours.wsum, xla.wsum)];
            for (what, ours, xla) in pairs {
                // False for a NaN.
                let agrees = (ours - xla).abs() <= allowed;
                if !agrees {
                    bail!("output {index}: {what} {ours} where XLA returned {xla} (allowed difference {allowed:.3e})");
                }
            }
            if ours.nonfinite != xla.nonfinite {
                bail!(
                    "output {index}: {} elements are not finite where XLA returned {}",
                    ours.nonfinite,
                    xla.nonfinite
                );
            }
        }
        Ok(())
    }
}

impl Sums {
    fn read(json: &Value) -> Result<Sums> {
        let number = |key: &str| json[key].as_f64().with_context(|| format!("an output has no {key}"));
        Ok(Sums {
            sum: number("sum")?,
            abs_sum: number("abs_sum")?,
            wsum: number("wsum")?,
            nonfinite: number("nonfinite")?,
        })
    }
}

/// Times of a program whose outputs agreed with XLA's.
pub struct Measurement {
    /// Median time of a compilation, in milliseconds.
    pub compile_ms: f64,
    /// Median time of an execution, in microseconds.
    pub run_us: f64,
}

impl Measurement {
    /// The line above [`row`](Measurement::row)s.
    pub const HEAD: &str = "program                  instructions  compile ms      run us   GFLOP/s  outputs";

    pub fn row(&self, program: &Program) -> String {
        let rate = program.flops.map_or_else(|| "-".to_owned(), |flops| format!("{:.1}", flops / self.run_us / 1e3));
        let Program { name, instructions, .. } = program;
        let Measurement { compile_ms, run_us } = self;
        format!("{name:<24} {instructions:>12} {compile_ms:>11.1} {run_us:>11.1} {rate:>9}  agree with XLA's")
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(sum: f64, nonfinite: f64) -> Sums {
        Sums { sum, abs_sum: 10.0, wsum: 1.0, nonfinite }
    }

    fn one_output() -> Program {
        Program {
            name: "p".to_owned(),
            description: String::new(),
            path: PathBuf::new(),
            instructions: 3,
            flops: Some(2e6),
            tolerance: 0.01,
            outputs: vec![sums(2.0, 0.0)],
        }
    }

    #[test]
    fn outputs_agree_within_the_tolerance_of_the_absolute_sum() {
        let program = one_output();
        program.compare(&[sums(2.09, 0.0)]).unwrap();
        let message = |actual: &[Sums]| program.compare(actual).unwrap_err().to_string();
        assert!(message(&[sums(2.11, 0.0)]).starts_with("output 0: sum 2.11 where XLA returned 2"));
        assert!(message(&[sums(f64::NAN, 0.0)]).contains("sum NaN"));
        assert!(message(&[sums(2.0, 1.0)]).contains("not finite"));
        assert!(message(&[]).contains("0 outputs, XLA returned 1"));
    }

    #[test]
    fn a_row_stands_under_its_head() {
        let row = Measurement { compile_ms: 12.34, run_us: 1000.0 }.row(&one_output());
        assert_eq!(row.find("agree"), Measurement::HEAD.find("outputs"));
        assert!(row.contains("12.3") && row.contains(" 2.0 "), "{row}");
    }

    #[test]
    fn options_of_the_measured_program_come_after_two_dashes() {
        let words = ["softmax_rows", "--", "--pairs", "1"].map(str::to_owned);
        let (names, options) = split(&words);
        assert_eq!((names, options), (&words[..1], &words[2..]));
        assert_eq!(split(&words[..1]), (&words[..1], &[][..]));
    }
}
