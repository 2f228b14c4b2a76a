//! Programs for several devices: cases of the corpus, and runs on the devices of a client.

use xla::compare::Tolerance;
use xla::npz::Archive;
use xla::{
    ArrayShape, Buffer, Client, CompileOptions, Error, ExecuteOptions, Literal, LoadedExecutable, Result,
    VerifiedModule,
};
use xla_hlo::eval::grid::Grid;
use xla_hlo::text::parse_module;
use xla_passes::{ProgramForm, localize, program_form};
use xla_service::{DeviceResults, Dispatch, Donate};

use crate::corpus::{self, Case};

/// Case whose program consists of programs of each device.
pub struct DeviceCase {
    /// Case of the corpus.
    pub case: Case,
    /// Program as JAX writes it.
    pub module: VerifiedModule,
    /// Program of each device: the module, or its [local form](localize) if it is on global values.
    pub local: VerifiedModule,
    /// Arguments of each device.
    pub arguments: Vec<Vec<Literal>>,
}

/// Returns the cases of the corpus in which each device runs a program of its own values, and those in which all global
/// values enter or leave manual computations.
pub fn cases() -> Result<Vec<DeviceCase>> {
    let all = corpus::suite("multi_device").map_err(|error| Error::not_found(error.to_string()))?;
    let cases =
        all.into_iter().filter(|case| ["replicas", "partitions", "gspmd", "shardy"].contains(&&*case.info.form));
    cases.map(DeviceCase::new).collect()
}

impl DeviceCase {
    fn new(case: Case) -> Result<DeviceCase> {
        let mut module = parse_module(&case.module)?;
        // JAX states it in the options of the compilation, which the text lacks.
        module.attributes_mut().allow_spmd_sharding_propagation_to_output = vec![true];
        let module = VerifiedModule::new(module)?;
        let local = match program_form(&module) {
            ProgramForm::Global(_) => localize(&module)?.module,
            ProgramForm::OneDevice | ProgramForm::PerDevice => module.clone(),
        };
        let layout = local.entry_layout();
        let mut archive = Archive::from_bytes("inputs.npz", case.inputs.clone())?;
        let mut of_device = |device: usize| {
            let parameters = layout.parameters.iter().enumerate();
            parameters.map(|(i, shape)| archive.read(&format!("arg{i}.dev{device}"), shape.expect_array()?)).collect()
        };
        let arguments = (0..Grid::of(&local)?.device_count()).map(&mut of_device).collect::<Result<_>>()?;
        Ok(DeviceCase { case, module, local, arguments })
    }
}

/// Returns the arrays of the results of each device that differ from the expected ones of a case.
pub fn differences(case: &Case, results: &[Literal]) -> Result<Vec<String>> {
    let mut expected = Archive::from_bytes("expected.npz", case.expected.clone())?;
    let Case { info, .. } = case;
    let tolerance = Tolerance { rtol: info.rtol, atol: info.atol, signed_zero: info.signed_zero };
    let (mut differences, mut count) = (Vec::new(), 0);
    for (device, result) in results.iter().enumerate() {
        for (i, leaf) in result.leaves().into_iter().enumerate() {
            let name = format!("out{i}.dev{device}");
            let shape: &ArrayShape = leaf.array_shape();
            let difference = tolerance.difference(&expected.read(&name, shape)?, leaf);
            differences.extend(difference.map(|difference| format!("{name} {shape}: {difference}")));
            count += 1;
        }
    }
    let names = expected.names().len();
    if count != names {
        differences.push(format!("there are {count} outputs, expected {names}"));
    }
    Ok(differences)
}

/// Runs a program on devices of a client, one for each list of arguments. Returns the result of each device.
pub fn run(client: &Client, module: &VerifiedModule, arguments: &[Vec<Literal>]) -> Result<Vec<Literal>> {
    let program = client.compile(module, &CompileOptions::default())?;
    launch(&program, arguments, Donate::default())
}

/// Runs a compiled program on its devices, one for each list of arguments. Returns the result of each device.
pub fn launch(program: &LoadedExecutable, arguments: &[Vec<Literal>], donate: Donate) -> Result<Vec<Literal>> {
    let options = ExecuteOptions { dispatch: Dispatch::Queued, donate, ..ExecuteOptions::default() };
    values(program, &start(program, arguments, &options)?)
}

/// Launches a compiled program on its devices, one for each list of arguments.
pub fn start(
    program: &LoadedExecutable,
    arguments: &[Vec<Literal>],
    options: &ExecuteOptions,
) -> Result<Vec<DeviceResults>> {
    let lists = program.devices().zip(arguments).map(|(device, list)| {
        list.iter().map(|literal| device.buffer_of_shape(literal, literal.array_shape())).collect()
    });
    let buffers: Vec<Vec<Buffer>> = lists.collect::<Result<_>>()?;
    let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
    program.launch(&lists, options)
}

/// Waits for a launch. Returns the result of each device.
pub fn values(program: &LoadedExecutable, results: &[DeviceResults]) -> Result<Vec<Literal>> {
    let literals = results.iter().map(|result| {
        // A program without results may fail as well.
        result.completion().wait()?;
        let literals = result.buffers.iter().map(Buffer::to_literal).collect::<Result<_>>()?;
        program.signature().group_results(literals)
    });
    literals.collect()
}
