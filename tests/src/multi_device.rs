//! Programs for several devices: cases of the corpus, and runs on the devices of a client.

use xla::compare::Tolerance;
use xla::npz::Archive;
use xla::{ArrayShape, Buffer, Client, CompileOptions, ExecuteOptions, Literal, Result, VerifiedModule};
use xla_hlo::eval::grid::Grid;
use xla_hlo::text::parse_module;
use xla_service::Dispatch;

use crate::corpus::{self, Case};

/// Returns the cases of the corpus in which each device runs a program of its own values.
pub fn cases() -> std::io::Result<Vec<Case>> {
    let cases = corpus::suite("multi_device")?.into_iter();
    Ok(cases.filter(|case| ["replicas", "partitions"].contains(&&*case.info.form)).collect())
}

/// Returns the module of a case, and the arguments of each device.
pub fn inputs(case: &Case) -> Result<(VerifiedModule, Vec<Vec<Literal>>)> {
    let module = VerifiedModule::new(parse_module(&case.module)?)?;
    let layout = module.entry_layout();
    let mut archive = Archive::from_bytes("inputs.npz", case.inputs.clone())?;
    let mut of_device = |device: usize| {
        let parameters = layout.parameters.iter().enumerate();
        parameters.map(|(i, shape)| archive.read(&format!("arg{i}.dev{device}"), shape.expect_array()?)).collect()
    };
    let arguments = (0..Grid::of(&module)?.device_count()).map(&mut of_device).collect::<Result<_>>()?;
    Ok((module, arguments))
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
    let lists = program.devices().zip(arguments).map(|(device, list)| {
        list.iter().map(|literal| device.buffer_of_shape(literal, literal.array_shape())).collect()
    });
    let buffers: Vec<Vec<Buffer>> = lists.collect::<Result<_>>()?;
    let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
    let results =
        program.launch(&lists, &ExecuteOptions { dispatch: Dispatch::Queued, ..ExecuteOptions::default() })?;
    let literals = results.iter().map(|result| {
        let literals = result.buffers.iter().map(Buffer::to_literal).collect::<Result<_>>()?;
        program.signature().group_results(literals)
    });
    literals.collect()
}
