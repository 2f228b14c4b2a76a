//! Random programs for several devices: collectives of every kind in every group mode, among local operations, loops
//! and branches. A program is determined by its seed and the number of devices.
//!
//! Local operations are exact, and collectives reduce in the order of the group, so all platforms return the same bits,
//! except for the payloads of NaNs. Programs for platforms with another order have only exact sums.

mod collectives;
mod groups;
mod local;
mod values;
mod writer;

use xla::compare::Tolerance;
use xla::{Client, CompileOptions, LoadedExecutable, OptLevel, PlatformRegistry};
use xla_hlo::eval::grid::{self, Grid};
use xla_hlo::text::parse_module;
use xla_hlo::{Error, Literal, Result, VerifiedModule};
use xla_service::{ClientOptions, Compiler};

use crate::differential::{Failure, FailureKind};
use crate::generate::Random;
use crate::multi_device::launch;
pub use values::Kinds;
use writer::Writer;

/// Program for several devices, with the arguments of each device.
#[derive(Clone, Debug)]
pub struct GridProgram {
    /// Program of each device.
    pub module: VerifiedModule,
    /// Arguments of each device.
    pub arguments: Vec<Vec<Literal>>,
}

/// Generates the program of a seed for a number of devices.
pub fn program(seed: u64, devices: usize, kinds: Kinds) -> Result<GridProgram> {
    let mut random = Random::new(seed ^ (devices as u64) << 40);
    let divisors: Vec<usize> = (1..=devices).filter(|n| devices.is_multiple_of(*n)).collect();
    let replicas = random.pick(&divisors);
    let grid = Grid { replicas, partitions: devices / replicas };
    let (text, arguments) = Writer::new(&mut random, grid, kinds).program(&format!("grid_{seed}_{devices}"));
    let module = parse_module(&text).and_then(VerifiedModule::new);
    let module = module.map_err(|error| Error::internal(format!("{error}\n{text}")))?;
    Ok(GridProgram { module, arguments })
}

/// Returns the kinds of collectives that a compiler supports, itself or in joined programs.
pub fn kinds_for(compiler: &dyn Compiler) -> Kinds {
    match (compiler.has_collectives(), compiler.reduces_in_rank_order()) {
        (true, true) => Kinds::All,
        (true, false) => Kinds::AnyOrder,
        (false, _) => Kinds::Joined,
    }
}

/// Returns the optimisation level for the program of a seed.
pub fn level(seed: u64) -> OptLevel {
    if seed % 3 == 2 { OptLevel::O0 } else { OptLevel::O2 }
}

/// Compares a platform with the evaluator over the grid on the program of a seed. Returns the first failure, and the
/// number of instructions.
pub fn check(
    registry: &PlatformRegistry,
    platform: &str,
    seed: u64,
    devices: usize,
) -> Result<(Option<Failure>, usize)> {
    let kinds = kinds_for(&*registry.get(platform)?.compiler());
    let GridProgram { module, arguments } = program(seed, devices, kinds)?;
    let options = ClientOptions { devices: Some(devices), ..ClientOptions::default() };
    let client = Client::with_options(registry, platform, options)?;
    let options = CompileOptions { opt_level: level(seed), excess_precision: false, ..CompileOptions::default() };
    let failure = match client.compile(&module, &options) {
        Ok(compiled) => problem(&module, &compiled, &arguments)?,
        Err(error) => Some(Failure { kind: FailureKind::Compile, message: error.to_string() }),
    };
    Ok((failure, module.instruction_count()))
}

/// Compares a compiled program with the evaluator over the grid, with all arguments kept, and with all donated.
///
/// Returns an error if the evaluator fails.
pub fn problem(
    module: &VerifiedModule,
    compiled: &LoadedExecutable,
    arguments: &[Vec<Literal>],
) -> Result<Option<Failure>> {
    let expected = grid::evaluate(module, arguments.to_vec())?;
    // Replicas without collectives are compiled for one device.
    let compiled = match compiled.devices().len() == arguments.len() {
        true => compiled.clone(),
        false => compiled.on_devices(&(0..arguments.len()).collect::<Vec<_>>())?,
    };
    let all = arguments.first().map_or(0, Vec::len);
    for (kind, count) in [(FailureKind::Platform, 0), (FailureKind::SecondRun, all)] {
        let message = match launch(&compiled, arguments, (0..count).collect()) {
            // The kernels of a joined program determine the signs of zeros.
            Ok(actual) => difference(&expected, &actual, compiled.join_reason().is_none()),
            Err(error) => return Ok(Some(Failure { kind: FailureKind::Run, message: error.to_string() })),
        };
        if let Some(message) = message {
            return Ok(Some(Failure { kind, message }));
        }
    }
    Ok(None)
}

/// Describes the first difference of the results of a program on each device: all bits are equal, but for NaNs and, if
/// requested, signs of zeros.
pub fn difference(expected: &[Literal], actual: &[Literal], signed_zero: bool) -> Option<String> {
    let tolerance = Tolerance { rtol: 0.0, atol: 0.0, signed_zero };
    if expected.len() != actual.len() {
        return Some(format!("{} devices have results, expected {}", actual.len(), expected.len()));
    }
    expected.iter().zip(actual).enumerate().find_map(|(device, (expected, actual))| {
        let (expected, actual) = (expected.leaves(), actual.leaves());
        if expected.len() != actual.len() {
            return Some(format!("device {device} has {} results, expected {}", actual.len(), expected.len()));
        }
        let mut pairs = expected.into_iter().zip(actual).enumerate();
        pairs.find_map(|(i, (expected, actual))| {
            if expected.shape() != actual.shape() {
                let (found, wanted) = (actual.shape(), expected.shape());
                return Some(format!("result {i} of device {device} is {found}, expected {wanted}"));
            }
            let difference = tolerance.difference(expected, actual)?;
            Some(format!("result {i} of device {device}, {}: {difference}", expected.shape()))
        })
    })
}
