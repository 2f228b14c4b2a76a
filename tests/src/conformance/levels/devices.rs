//! Level 7: programs for several devices: generated ones against the evaluator over the grid, donation, failures of one
//! device, launches over overlapping sets of devices.
//!
//! On a platform without collectives, programs are joined for the first device. Generated programs then have only
//! collectives that can be joined.

use std::sync::Arc;
use std::time::{Duration, Instant};

use xla::{
    ArrayShape, Buffer, Client, CompileOptions, Error, ExecuteOptions, Literal, LoadedExecutable, VerifiedModule,
};
use xla_hlo::ElementType::F32;
use xla_hlo::Scalar;
use xla_hlo::ops::CustomCallContext;
use xla_hlo::text::parse_module;
use xla_service::ClientOptions;

use super::Sizes;
use crate::conformance::case::{Case, Check, Level, Stop, Subject, ensure};
use crate::grid_programs::{self, GridProgram};
use crate::launches::Campaign;
use crate::multi_device::launch;

const SUM: &str = include_str!("programs/sum_in_place.hlo");
const HANDLER: &str = include_str!("programs/handler_then_sum.hlo");

/// Time after which the other devices must have ended if one fails: a quarter of the default time-out of collectives.
const PATIENCE: Duration = Duration::from_secs(10);

/// Body of a case for a number of devices.
type Work = fn(&Subject, usize) -> Check;

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let seeds = if sizes.quick { 10 } else { 40 };
    let of_devices = |devices: usize| {
        let named: [(&str, Work); 3] = [("donation", donation), ("failure", failure), ("overlap", overlap)];
        let named = named.map(|(name, work)| {
            Case::new(Level::Devices, format!("{name}/{devices}"), move |subject| work(subject, devices))
        });
        let generated = (0..seeds).map(move |seed| {
            Case::new(Level::Devices, format!("generated/{devices}/{seed}"), move |subject| {
                generated(subject, seed, devices)
            })
        });
        named.into_iter().chain(generated)
    };
    [2, 4].into_iter().flat_map(of_devices).collect()
}

/// Creates a client of some devices; skips the case if the platform has fewer.
fn client(subject: &Subject, devices: usize) -> Result<Client, Stop> {
    if let Err(error) = subject.platform().executors(Some(devices)) {
        return Err(match error {
            Error::NotFound(_) => Stop::Skipped(error.message().to_string()),
            error => error.into(),
        });
    }
    let options = ClientOptions { devices: Some(devices), ..ClientOptions::default() };
    Ok(Client::with_options(subject.registry(), subject.name(), options)?)
}

/// Compiles a program; `seed` determines the optimisation level.
fn compile(client: &Client, module: &VerifiedModule, seed: u64) -> xla::Result<LoadedExecutable> {
    let opt_level = grid_programs::level(seed);
    client.compile(module, &CompileOptions { opt_level, excess_precision: false, ..CompileOptions::default() })
}

/// Compiles one of the programs of this level for a number of devices.
fn program(client: &Client, text: &str, devices: usize) -> xla::Result<LoadedExecutable> {
    let module = VerifiedModule::new(parse_module(&text.replace("DEVICES", &devices.to_string()))?)?;
    compile(client, &module, 0)
}

fn numbers(values: &[f32]) -> Literal {
    let shape = ArrayShape::new(F32, [values.len()]);
    Literal::from_fn(&shape, |i| Scalar::Float(values[i].into())).expect("a small array")
}

/// Compares a generated program with the evaluator over the grid.
fn generated(subject: &Subject, seed: u64, devices: usize) -> Check {
    let client = client(subject, devices)?;
    let kinds = grid_programs::kinds_for(&*subject.platform().compiler());
    let GridProgram { module, arguments } = grid_programs::program(seed, devices, kinds)?;
    let compiled = compile(&client, &module, seed)?;
    let problem = grid_programs::problem(&module, &compiled, &arguments)?;
    ensure!(problem.is_none(), "{}\n{}", problem.map_or_else(String::new, |failure| failure.message), *module);
    ensure!(
        client.joined_programs() == 0 || !subject.platform().compiler().has_collectives(),
        "the program is joined, although the platform has collectives: {}",
        compiled.join_reason().unwrap_or_default()
    );
    Ok(())
}

/// Checks that arguments of all devices can be donated.
fn donation(subject: &Subject, devices: usize) -> Check {
    let client = client(subject, devices)?;
    let compiled = program(&client, SUM, devices)?;
    let own = |device: usize| numbers(&[device as f32, 1.0, 2.0, 3.0, -0.5]);
    let buffers = compiled.devices().enumerate().map(|(number, device)| {
        let literal = own(number);
        device.buffer_of_shape(&literal, literal.array_shape())
    });
    let buffers = buffers.collect::<xla::Result<Vec<Buffer>>>()?;
    let lists: Vec<[&Buffer; 1]> = buffers.iter().map(|buffer| [buffer]).collect();
    let results = compiled.launch(&lists, &ExecuteOptions { donate: vec![0].into(), ..ExecuteOptions::default() })?;
    let others = (devices - 1) as f32;
    for (number, result) in results.iter().enumerate() {
        let ids = (devices * (devices - 1) / 2 - number) as f32;
        let expected = numbers(&[ids, others, 2.0 * others, 3.0 * others, -0.5 * others]);
        let found = result.buffers[0].to_literal()?;
        ensure!(found == expected, "device {number} has {found:?}, expected {expected:?}");
    }
    ensure!(buffers.iter().all(Buffer::is_donated), "an argument of a device is not donated");
    Ok(())
}

/// Checks that a device that fails ends the others with its error, and that the client is usable afterwards.
fn failure(subject: &Subject, devices: usize) -> Check {
    let even = |_: &CustomCallContext<'_>, operands: Vec<Literal>| match operands[0].get(0) {
        Scalar::Float(value) if value % 2.0 == 1.0 => Err(Error::invalid_argument(format!("{value} is odd"))),
        _ => Ok(operands[0].clone()),
    };
    subject.registry().custom_calls().register("conformance.even", Arc::new(even));
    let client = client(subject, devices)?;
    let compiled = program(&client, HANDLER, devices)?;
    let arguments = |bad: Option<usize>| -> Vec<Vec<Literal>> {
        let first = |device: usize| if bad == Some(device) { 13.0 } else { 2.0 * device as f32 };
        (0..devices).map(|device| vec![numbers(&[first(device), 1.0, 2.0])]).collect()
    };
    for bad in 0..devices {
        let start = Instant::now();
        let error = launch(&compiled, &arguments(Some(bad)), Vec::new().into()).err();
        let message = error.map(|error| error.to_string()).unwrap_or_default();
        ensure!(message.contains("13 is odd"), "device {bad} failed, but the launch says: {message:?}");
        ensure!(start.elapsed() < PATIENCE, "the failure of device {bad} took {:?}", start.elapsed());
    }
    let results = launch(&compiled, &arguments(None), Vec::new().into())?;
    let (count, ids) = (devices as f32, (devices * (devices - 1)) as f32);
    let expected = numbers(&[ids, count, 2.0 * count]);
    for result in results {
        let found = result.leaves()[0];
        ensure!(*found == expected, "after the failures, the sum is {found:?}, expected {expected:?}");
    }
    Ok(())
}

/// Checks that launches over overlapping sets of devices, from several threads, end with the right values. Launches
/// with a failing device must end with its error.
fn overlap(subject: &Subject, devices: usize) -> Check {
    client(subject, devices)?;
    let failures = if subject.platform().compiler().has_collectives() { 12 } else { 0 };
    let campaign = Campaign {
        devices,
        threads: 4,
        launches: 40,
        failures,
        programs: 2,
        seed: 0,
        prompt: PATIENCE,
        patience: 2 * PATIENCE,
    };
    let summary = campaign.run(subject.registry(), subject.name(), &|_| {})?;
    ensure!(summary.problems.is_empty(), "{}", summary.problems.join("\n"));
    Ok(())
}
