//! Estimates of the benchmark programs' kernels, and their comparison with the table in the repository.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sass_model::cubin;
use sass_model::kernel::Kernel;
use sass_model::model::{Estimate, Measured};
use sass_model::rates::Rates;
use sass_model::rows::{Row, loops, table_rows};
use sass_model::sass;
use sass_model::table::Table;

use crate::shell::{capture, program, root};

/// Treatment of estimates.
pub struct Roofline {
    pub nvdisasm: PathBuf,
    /// Whether the table is written anew.
    pub update: bool,
    /// Whether all programs of the table are compiled.
    pub whole: bool,
}

impl Roofline {
    /// Reads the machine code of kernels from a folder.
    pub fn with_code(kernels: Vec<Kernel>, folder: &Path) -> Result<Vec<Measured>> {
        let mut objects = HashMap::new();
        for kernel in &kernels {
            if let Entry::Vacant(entry) = objects.entry(kernel.object) {
                let file = folder.join(format!("kernels.{}.cubin", kernel.object));
                let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
                entry.insert(cubin::kernels(&bytes)?);
            }
        }
        let measured = |kernel: Kernel| {
            let codes = objects.get(&kernel.object).into_iter().flatten();
            let code = codes.filter(|(name, _)| *name == kernel.name).map(|(_, code)| code.clone()).next();
            let code = code.with_context(|| format!("{} is not in the machine code", kernel.name))?;
            Ok(Measured { kernel, code, estimate: None })
        };
        kernels.into_iter().map(measured).collect()
    }

    /// Estimates all kernels with machine code, which is disassembled as one: a start of the disassembler takes a
    /// quarter of a second, a kernel next to nothing.
    pub fn estimate(&self, rows: &mut [Row], architecture: &str) -> Result<()> {
        let rates = Rates::of(architecture)?;
        let kernels = || rows.iter().flat_map(|row| row.outcome.iter().flatten()).filter(|of| !of.code.is_empty());
        let file = root().join("target/ptxas/out/kernels.bin");
        fs::write(&file, kernels().flat_map(|of| of.code.iter().copied()).collect::<Vec<u8>>())?;
        let mut command = program(&self.nvdisasm, &["--binary", &architecture.replace("sm_", "SM")]);
        command.arg(&file);
        let mut end = 0;
        let starts: Vec<(&str, u64)> = kernels()
            .map(|of| {
                end += of.code.len() as u64;
                (of.kernel.name.as_str(), end - of.code.len() as u64)
            })
            .collect();
        let functions = if starts.is_empty() { Vec::new() } else { sass::parse_binary(&capture(command)?, starts)? };
        let mut functions = functions.into_iter();
        for measured in rows.iter_mut().flat_map(|row| row.outcome.iter_mut().flatten()) {
            if !measured.code.is_empty() {
                let name = &measured.kernel.name;
                let function = functions.next().filter(|function| function.name == *name);
                let function = function.with_context(|| format!("{name} is not in what the disassembler printed"))?;
                measured.estimate = Some(Estimate::new(&measured.kernel, &function, &rates));
            }
        }
        Ok(())
    }

    /// Compares estimates with the table, or writes it.
    pub fn report(&self, rows: &[Row], architecture: &str) -> Result<()> {
        let rates = Rates::of(architecture)?;
        let mut now = Table::new(table_rows(rows));
        let details = root().join(format!("target/ptxas/roofline-{architecture}.txt"));
        fs::write(&details, loops(rows)).with_context(|| details.display().to_string())?;
        let name = table_name(architecture);
        let file = root().join(&name);
        let kept = kept(&name)?;
        println!("{architecture}: every loop is in target/ptxas/roofline-{architecture}.txt");
        if self.update {
            now.take_reasons(&kept);
            fs::create_dir_all(root().join("docs/results"))?;
            fs::write(&file, now.text(&rates)).with_context(|| name.clone())?;
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
        match comparison.problems.len() {
            0 => Ok(()),
            count => bail!("{architecture}: {count} estimates are worse than the table allows"),
        }
    }
}

/// The place of the table of an architecture.
fn table_name(architecture: &str) -> String {
    format!("docs/results/roofline-{architecture}.txt")
}

/// The table of an architecture, empty where there is none.
fn kept(name: &str) -> Result<Table> {
    match fs::read_to_string(root().join(name)) {
        Ok(text) => Table::parse(&text).with_context(|| name.to_owned()),
        Err(_) => Ok(Table::new(Vec::new())),
    }
}
