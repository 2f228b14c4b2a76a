//! Programs for several devices: number of devices, arguments of each device, launch.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use xla::hlo::eval::grid::Grid;
use xla::hlo::{ArrayShape, Error, LeafSharding, Literal, Module, Result, ResultExt, VerifiedModule};
use xla::passes::join::ArrayParts;
use xla::passes::{ProgramForm, program_form};
use xla::service::{ArgumentLeaf, ClientOptions};
use xla::{Buffer, Client, ExecuteOptions, LoadedExecutable, PlatformRegistry};

use super::device_arrays::{DeviceArrays, Spelling};
use super::failure::{BadInput, Failure, Outcome};
use super::inputs::{InputArgs, Inputs};
use super::program::Source;
use super::signature;

/// Limit on the number of devices of a program.
const MOST: usize = 1024;

/// Option with the number of devices.
#[derive(Args, Debug)]
pub struct DevicesArg {
    /// Number of devices, which must be that of the program: replicas times partitions [default: the program's number]
    #[arg(long, value_name = "N")]
    devices: Option<NonZeroUsize>,
}

impl DevicesArg {
    /// Returns the number of devices of a program; an error if the option requests another one.
    pub fn count(&self, module: &Module) -> Outcome<usize> {
        let grid = Grid::of(module).bad_input()?;
        let (count, name) = (grid.device_count(), module.name());
        if let Some(asked) = self.devices.filter(|asked| asked.get() != count) {
            let Grid { replicas, partitions } = grid;
            let number = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            return Err(Failure::usage(format!(
                "{name} is a program for {} ({}, {}), but --devices is {asked}",
                number(count, "device"),
                number(replicas, "replica"),
                number(partitions, "partition")
            )));
        }
        if count > MOST {
            let message = format!("{name} is a program for {count} devices, more than the limit of {MOST}");
            return Err(Error::resource_exhausted(message)).bad_input();
        }
        Ok(count)
    }
}

/// Parses and verifies a program. Results whose sharding the program does not state may be split by the compiler, as
/// JAX requests, unless the header of the module decides it.
pub fn verified(source: &Source) -> Outcome<VerifiedModule> {
    source.verify(parsed(source)?)
}

/// Parses a program like [`verified`].
pub fn parsed(source: &Source) -> Outcome<Module> {
    let mut module = source.parse()?;
    let attributes = module.attributes_mut();
    let is_split = &mut attributes.allow_spmd_sharding_propagation_to_output;
    if attributes.num_partitions > 1 && is_split.is_empty() {
        *is_split = vec![true];
    }
    Ok(module)
}

/// Creates a client of a platform's first devices.
pub fn client(registry: &PlatformRegistry, platform: &str, devices: usize) -> Outcome<Client> {
    let options = ClientOptions { devices: Some(devices), ..ClientOptions::default() };
    let client = Client::with_options(registry, platform, options);
    Ok(client.context(|| format!("a program for {devices} devices"))?)
}

/// Places a program on the first devices of its client.
pub fn place(executable: LoadedExecutable, devices: usize) -> Result<LoadedExecutable> {
    // Independent replicas are compiled for one device.
    if executable.devices().len() == devices {
        return Ok(executable);
    }
    executable.on_devices(&(0..devices).collect::<Vec<_>>())
}

/// Returns the number of partitions of a program.
pub fn partitions(executable: &LoadedExecutable) -> Result<usize> {
    let source = executable.source().map_or(executable.module(), |source| source);
    Ok(Grid::of(source)?.partitions)
}

/// Returns the parts of arrays of these shapes on the devices of a program. Arrays of programs without shardings are
/// the same on all devices.
pub fn parts<'s>(
    executable: &LoadedExecutable,
    shardings: Option<Vec<&LeafSharding>>,
    shapes: impl Iterator<Item = &'s ArrayShape>,
    describe: impl Fn(usize) -> String,
) -> Result<Vec<ArrayParts>> {
    let (partitions, whole) = (partitions(executable)?, LeafSharding::default());
    let parts = shapes.enumerate().map(|(i, shape)| {
        let sharding = shardings.as_ref().map_or(&whole, |shardings| shardings[i]);
        ArrayParts::new(sharding, shape, partitions).context(|| describe(i))
    });
    parts.collect()
}

/// Arguments of a program on each of its devices.
pub enum Arguments {
    /// Whole arrays, and their parts.
    Whole { inputs: Inputs, leaves: Vec<ArgumentLeaf>, parts: Vec<ArrayParts> },
    /// Arrays of each device. `parts` are those of a program on global values.
    OfDevices { arrays: DeviceArrays, leaves: Vec<ArgumentLeaf>, parts: Option<Vec<ArrayParts>> },
}

impl Arguments {
    /// Opens the arguments in a file or generated from a seed. `program` is the file of the program, if it has one.
    pub fn open(args: &InputArgs, program: Option<&Path>, executable: &LoadedExecutable) -> Outcome<Arguments> {
        let (leaves, devices) = (plain_arguments(executable), executable.devices().len());
        if let Some(path) = args.file().filter(|_| devices > 1) {
            let arrays = DeviceArrays::open(path, "arg", devices).bad_input()?;
            if arrays.spelling().bad_input()? == Spelling::OfDevices {
                arrays.check(leaves.len()).bad_input()?;
                let parts = shared_parts(executable, &leaves);
                return Ok(Arguments::OfDevices { arrays, leaves, parts });
            }
        }
        let (leaves, parts) = whole(executable, leaves)?;
        let inputs = args.open(program, &leaves)?;
        Ok(Arguments::Whole { inputs, leaves, parts })
    }

    /// Generates the arguments from a seed: whole arrays, cut into the parts of the devices.
    pub fn made(program: Option<&Path>, executable: &LoadedExecutable, seed: u64) -> Outcome<Arguments> {
        let (leaves, parts) = whole(executable, plain_arguments(executable))?;
        let inputs = super::inputs::made(program, &leaves, seed)?;
        Ok(Arguments::Whole { inputs, leaves, parts })
    }

    /// Returns an argument on each device.
    pub fn literals(&mut self, executable: &LoadedExecutable, index: usize) -> Outcome<Vec<Literal>> {
        let devices = executable.devices().len();
        match self {
            Arguments::Whole { inputs, leaves, parts } => {
                let (whole, partitions) = (inputs.literal(leaves, index)?, partitions(executable)?);
                let part = |device: usize| parts[index].cut(&whole, device % partitions);
                Ok((0..devices).map(part).collect::<Result<_>>()?)
            }
            Arguments::OfDevices { arrays, leaves, parts } => {
                let leaf = &leaves[index];
                let mut array =
                    |device: usize| arrays.read(index, device, &leaf.shape).context(|| leaf.describe(index));
                let literals = (0..devices).map(&mut array).collect::<Result<Vec<_>>>().bad_input()?;
                if let Some(parts) = parts {
                    let checked = check_equal_parts(&parts[index], &literals, partitions(executable)?);
                    checked.context(|| leaf.describe(index)).bad_input()?;
                }
                Ok(literals)
            }
        }
    }
}

/// Returns the parts of the arguments of a program on global values. Devices may have the same part. `None` for other
/// programs, and if an argument is not yet reduced: each device then has its own value.
fn shared_parts(executable: &LoadedExecutable, leaves: &[ArgumentLeaf]) -> Option<Vec<ArrayParts>> {
    let source = executable.source().filter(|source| matches!(program_form(source), ProgramForm::Global(_)))?;
    let partitions = Grid::of(source).ok()?.partitions;
    let shapes = leaves.iter().map(|leaf| &*leaf.shape);
    let parts = shapes.zip(executable.argument_shardings()?);
    parts.map(|(shape, sharding)| ArrayParts::new(sharding, shape, partitions).ok()).collect()
}

/// Checks that devices with the same part of an array of a replica have equal values.
fn check_equal_parts(parts: &ArrayParts, literals: &[Literal], partitions: usize) -> Result<()> {
    for (device, literal) in literals.iter().enumerate() {
        let (replica, partition) = (device / partitions, device % partitions);
        let first = replica * partitions + parts.owner(partition);
        if literals[first].bytes() != literal.bytes() {
            return Err(Error::invalid_argument(format!(
                "the arrays of devices {first} and {device} differ, but both devices have the same part of the value"
            )));
        }
    }
    Ok(())
}

fn plain_arguments(executable: &LoadedExecutable) -> Vec<ArgumentLeaf> {
    let leaves = executable.signature().arguments().iter();
    leaves.map(|leaf| ArgumentLeaf { shape: Arc::new(signature::plain(&leaf.shape)), ..leaf.clone() }).collect()
}

/// Returns the arguments with the shapes of the whole arrays, and the parts of these.
fn whole(
    executable: &LoadedExecutable,
    mut leaves: Vec<ArgumentLeaf>,
) -> Outcome<(Vec<ArgumentLeaf>, Vec<ArrayParts>)> {
    let shapes = leaves.iter().map(|leaf| &*leaf.shape);
    let parts = parts(executable, executable.argument_shardings(), shapes, |i| leaves[i].describe(i)).bad_input()?;
    for (leaf, part) in leaves.iter_mut().zip(&parts) {
        // An array that is not split keeps its dynamic dimensions.
        if part.whole().dims() != leaf.shape.dims() {
            leaf.shape = Arc::new(part.whole().clone());
        }
    }
    Ok((leaves, parts))
}

/// Copies an argument to each device.
pub fn buffers(executable: &LoadedExecutable, index: usize, literals: &[Literal]) -> Result<Vec<Buffer>> {
    let leaf = &executable.signature().arguments()[index];
    if let [literal] = literals {
        return Ok(vec![executable.argument_buffer(index, literal)?]);
    }
    let devices = executable.devices().zip(literals);
    let buffers = devices.map(|(device, literal)| device.buffer_of_shape(literal, &leaf.shape));
    buffers.collect::<Result<_>>().context(|| leaf.describe(index))
}

/// Launches a program on its devices and waits for the results of all.
pub fn launch(
    executable: &LoadedExecutable,
    arguments: &[Vec<Buffer>],
    options: &ExecuteOptions,
) -> Result<Vec<Vec<Buffer>>> {
    let lists: Vec<Vec<&Buffer>> = arguments.iter().map(|list| list.iter().collect()).collect();
    let results = executable.launch(&lists, options)?;
    let of_device = |results: xla::service::DeviceResults| {
        if let Some(error) = results.failure() {
            return Err(error);
        }
        results.buffers.iter().try_for_each(Buffer::wait)?;
        // A program without results may fail as well.
        results.completion().wait()?;
        Ok(results.buffers)
    };
    results.into_iter().map(of_device).collect()
}

/// Runs a program once on its devices. Arguments are not used again, and some programs require their donation.
pub fn run_once(executable: &LoadedExecutable, mut arguments: Arguments) -> Outcome<Vec<Vec<Literal>>> {
    let mut lists: Vec<Vec<Buffer>> = executable.devices().map(|_| Vec::new()).collect();
    let count = executable.signature().arguments().len();
    for index in 0..count {
        let literals = arguments.literals(executable, index)?;
        let buffers = buffers(executable, index, &literals)?;
        lists.iter_mut().zip(buffers).for_each(|(list, buffer)| list.push(buffer));
    }
    drop(arguments);
    let options = ExecuteOptions { donate: (0..count).collect(), ..ExecuteOptions::default() };
    let results = launch(executable, &lists, &options)?;
    let literals = |buffers: &Vec<Buffer>| buffers.iter().map(Buffer::to_literal).collect::<Result<Vec<_>>>();
    Ok(results.iter().map(literals).collect::<Result<_>>()?)
}
