//! Inputs of a program: from an `.npz` file, or generated from a seed.

use std::path::{Path, PathBuf};

use clap::Args;
use xla::hlo::{ArrayShape, Error, Literal, Result, ResultExt};
use xla::npz::Archive;
use xla::service::ArgumentLeaf;
use xla::stablehlo::ArgumentShapes;

use super::device_arrays::{self, DEVICE};
use super::failure::{BadInput, Failure, Outcome};
use super::generate::Generator;
use super::manifest;

/// Source of the inputs.
#[derive(Args, Debug)]
#[group(multiple = false)]
pub struct InputArgs {
    /// Read inputs arg0, arg1, ... from an .npz file, one for each array of the parameters (tuples flattened)
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Generate inputs from a seed; a manifest.json next to MODULE may specify the distributions
    #[arg(long, value_name = "N")]
    inputs_seed: Option<u64>,
}

/// Source of the inputs of one run, one literal at a time.
pub enum Inputs {
    File(Archive),
    Made { generators: Vec<Generator>, seed: u64 },
}

impl InputArgs {
    /// Returns the path of the file with the inputs, if they are not generated.
    pub fn file(&self) -> Option<&Path> {
        self.inputs.as_deref()
    }

    /// Opens the source; an error unless there is exactly one input for each argument.
    pub fn open(&self, program: Option<&Path>, arguments: &[ArgumentLeaf]) -> Outcome<Inputs> {
        match (&self.inputs, self.inputs_seed) {
            (Some(path), _) => {
                let archive = Archive::open(path).bad_input()?;
                check_names(&archive, arguments).bad_input()?;
                Ok(Inputs::File(archive))
            }
            (None, Some(seed)) => made(program, arguments, seed),
            (None, None) if arguments.is_empty() => Ok(Inputs::Made { generators: Vec::new(), seed: 0 }),
            (None, None) => Err(Failure::usage(format!(
                "the module takes {}: give --inputs FILE.npz, or generate them with --inputs-seed 0",
                list(arguments)
            ))),
        }
    }
}

/// Creates inputs generated from a seed. `program` is the file of the program, if it has one.
pub fn made(program: Option<&Path>, arguments: &[ArgumentLeaf], seed: u64) -> Outcome<Inputs> {
    let shapes: Vec<&ArrayShape> = arguments.iter().map(|leaf| &*leaf.shape).collect();
    let program = program.map(manifest::Program::beside).transpose().bad_input()?.flatten();
    let generators = match program {
        Some(program) => program.generators(&shapes).bad_input()?,
        None => shapes.iter().map(|shape| Generator::for_type(shape.element_type())).collect(),
    };
    Ok(Inputs::Made { generators, seed })
}

impl InputArgs {
    /// Takes the extents of dynamic dimensions of arguments from the arrays of the file.
    pub fn give_extents(&self, shapes: &mut ArgumentShapes) -> Outcome {
        let Some(path) = &self.inputs else { return Ok(()) };
        let mut archive = Archive::open(path).bad_input()?;
        let arguments: Vec<usize> =
            archive.names().iter().filter_map(|name| name.strip_prefix("arg")?.parse().ok()).collect();
        for argument in arguments {
            if let Some(extents) = archive.extents(&format!("arg{argument}")) {
                shapes.set_extents(argument, &extents);
            }
        }
        Ok(())
    }
}

impl Inputs {
    /// Returns the value of argument `index`. Errors name the argument, its array and both shapes.
    pub fn literal(&mut self, arguments: &[ArgumentLeaf], index: usize) -> Outcome<Literal> {
        let leaf = &arguments[index];
        let literal = match self {
            Inputs::Made { generators, seed } => generators[index].literal(&leaf.shape, *seed, index),
            Inputs::File(archive) => archive.read(&format!("arg{index}"), &leaf.shape),
        };
        literal.context(|| leaf.describe(index)).bad_input()
    }
}

fn check_names(archive: &Archive, arguments: &[ArgumentLeaf]) -> Result<()> {
    let file = archive.path().display();
    if let Some(name) = archive.names().iter().find(|name| name.contains(DEVICE)) {
        return Err(Error::invalid_argument(format!(
            "{file} has {name}, an array of one of several devices, but the program is for 1 device"
        )));
    }
    for (i, leaf) in arguments.iter().enumerate() {
        if !archive.names().contains(&format!("arg{i}")) {
            let (what, shape) = (leaf.describe(i), &leaf.shape);
            let found = names(archive);
            return Err(Error::invalid_argument(format!(
                "{file} has no arg{i} for {what}, which is {shape}; it has {found}"
            )));
        }
    }
    if let Some(extra) = device_arrays::surplus(archive, "arg", arguments.len()) {
        return Err(Error::invalid_argument(format!(
            "{file} also has {extra}, but the module takes {}",
            list(arguments)
        )));
    }
    Ok(())
}

/// Limit on the arrays of a list that a message names.
const NAMED: usize = 8;

fn names(archive: &Archive) -> String {
    let all: Vec<&str> = archive.names().iter().map(String::as_str).collect();
    match all.len() {
        0 => "no arrays".to_string(),
        n if n > NAMED => format!("{} and {} more", all[..NAMED].join(", "), n - NAMED),
        _ => all.join(", "),
    }
}

/// Formats the arguments, such as `2 inputs (arg0 f32[2], arg1 s32[])`.
fn list(arguments: &[ArgumentLeaf]) -> String {
    let shown = arguments.iter().take(NAMED).enumerate().map(|(i, leaf)| format!("arg{i} {}", leaf.shape));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match arguments.len() {
        0 => "no inputs".to_string(),
        1 => format!("1 input ({shown})"),
        n if n > NAMED => format!("{n} inputs ({shown}, ...)"),
        n => format!("{n} inputs ({shown})"),
    }
}
