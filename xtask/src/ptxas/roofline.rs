//! Estimates of the benchmark programs' kernels, and their comparison with the table in the repository.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::kernel::Kernel;
use super::model::{Estimate, Measured, Stretch};
use super::rates::Rates;
use super::rows::Row;
use super::sass;
use super::table::{Table, TableRow};
use crate::shell::{capture, program, root};

/// The programs that are estimated, by the beginning of their names.
pub const PROGRAMS: &str = "bench/";

/// Treatment of estimates.
pub struct Roofline {
    pub nvdisasm: PathBuf,
    /// Whether the table is written anew.
    pub update: bool,
    /// Whether all programs of the table are compiled.
    pub whole: bool,
}

impl Roofline {
    /// Estimates kernels whose machine code lies in a folder.
    pub fn estimate(&self, kernels: Vec<Kernel>, folder: &Path, architecture: &str) -> Result<Vec<Measured>> {
        let rates = Rates::of(architecture)?;
        let mut objects: Vec<u64> = kernels.iter().map(|kernel| kernel.object).collect();
        objects.sort_unstable();
        objects.dedup();
        let mut functions = Vec::new();
        for object in objects {
            let mut command = program(&self.nvdisasm, &["--print-code", "--no-dataflow"]);
            command.arg(folder.join(format!("kernels.{object}.cubin")));
            functions.extend(sass::parse(&capture(command)?).with_context(|| format!("kernels.{object}.cubin"))?);
        }
        let measured = |kernel: Kernel| {
            let function = functions.iter().find(|function| function.name == kernel.name);
            let function = function.with_context(|| format!("{} is not in the machine code", kernel.name))?;
            let estimate = Some(Estimate::new(&kernel, function, rates));
            Ok(Measured { kernel, estimate })
        };
        kernels.into_iter().map(measured).collect()
    }

    /// Compares estimates with the table, or writes it.
    pub fn report(&self, rows: &[Row], architecture: &str) -> Result<()> {
        let rates = Rates::of(architecture)?;
        let mut now = Table::new(table_rows(rows));
        let details = root().join(format!("target/ptxas/roofline-{architecture}.txt"));
        fs::write(&details, loops(rows)).with_context(|| details.display().to_string())?;
        let file = root().join(format!("docs/results/roofline-{architecture}.txt"));
        let name = format!("docs/results/roofline-{architecture}.txt");
        let kept = match fs::read_to_string(&file) {
            Ok(text) => Table::parse(&text).with_context(|| name.clone())?,
            Err(_) => Table::new(Vec::new()),
        };
        println!("{architecture}: every loop is in target/ptxas/roofline-{architecture}.txt");
        if self.update {
            now.take_reasons(&kept);
            fs::create_dir_all(root().join("docs/results"))?;
            fs::write(&file, now.text(rates)).with_context(|| name.clone())?;
            let without: Vec<String> = now.without_reason().map(|row| row.name.clone()).collect();
            if !without.is_empty() {
                bail!("{name} is written; it lacks reasons of {}", without.join(", "));
            }
            println!("{name} is written");
            return Ok(());
        }
        let comparison = now.compare(&kept, self.whole);
        println!(
            "{name}: {} kernels are better than it, {} are new, {} are gone; --roofline --update writes it anew",
            comparison.better, comparison.new, comparison.gone
        );
        comparison.problems.iter().for_each(|problem| println!("{problem}"));
        if comparison.problems.is_empty() { Ok(()) } else { bail!("{} kernels are worse", comparison.problems.len()) }
    }
}

/// Kernels with their estimates, and the programs that they are of.
fn estimated(rows: &[Row]) -> impl Iterator<Item = (&str, &Measured, &Estimate)> {
    rows.iter().filter_map(|row| Some((row.name.strip_prefix(PROGRAMS)?, row.outcome.as_ref().ok()?))).flat_map(
        |(program, kernels)| {
            kernels.iter().filter_map(move |measured| Some((program, measured, measured.estimate.as_ref()?)))
        },
    )
}

fn table_rows(rows: &[Row]) -> Vec<TableRow> {
    estimated(rows).map(|(program, measured, estimate)| TableRow::new(program, measured, estimate)).collect()
}

/// All innermost loops of all kernels, as text.
fn loops(rows: &[Row]) -> String {
    let mut text = String::new();
    for (program, Measured { kernel, .. }, estimate) in estimated(rows) {
        let launch = kernel.launch;
        let per_element = |count: u64| count as f64 * launch.all_threads() / estimate.elements;
        let [_, memory, issue, special, tensor] = estimate.seconds.map(|seconds| seconds * 1e6);
        let _ = writeln!(
            text,
            "{program}/{}: {}\n  {} blocks of {} threads, {:.0} elements, {} registers; {:.2} instructions by elements{}\n  \
             us: memory {memory:.2}, issue {issue:.2}, special {special:.2}, tensor {tensor:.2}",
            kernel.name,
            kernel.strategy,
            launch.blocks,
            launch.threads,
            estimate.elements,
            kernel.registers,
            estimate.per_element,
            if estimate.by_data { ", at least: data decides how often a loop is done" } else { "" },
        );
        let stretches = estimate.loops.iter().map(|l| ("loop", l)).chain([("all", &estimate.whole)]);
        for (what, Stretch { address, turns, instructions, tensor, special, local, .. }) in stretches.clone() {
            let _ = writeln!(
                text,
                "  {what} at {address:#06x}: {turns} turns, {instructions} instructions, {:.2} by elements; {tensor} \
                 tensor, {special} special, {local} local",
                per_element(*instructions)
            );
        }
        for (what, Stretch { address, loads_in_flight, loads, stores, .. }) in stretches {
            let _ = writeln!(
                text,
                "  {what} at {address:#06x}: {loads_in_flight} loads in flight of {loads:?} bytes, stores of {stores:?}"
            );
        }
    }
    text
}
