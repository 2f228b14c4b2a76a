//! Programs of the corpus for several devices return the expected outputs of each device in the evaluator over the
//! grid.
//!
//! Programs with shardings of global values are left out, since they need a partitioner.

use xla::compare::Tolerance;
use xla::npz::Archive;
use xla::{ArrayShape, Literal, Result, VerifiedModule};
use xla_hlo::eval::grid::{self, Grid};
use xla_hlo::text::parse_module;
use xla_tests::corpus::{self, Case};

/// Returns the outputs of a case that differ.
fn differences(case: &Case) -> Result<Vec<String>> {
    let module = VerifiedModule::new(parse_module(&case.module)?)?;
    let devices = Grid::of(&module)?.device_count();
    assert_eq!(devices, (case.info.num_replicas * case.info.num_partitions) as usize, "{}", case.name);
    let layout = module.entry_layout();
    let mut inputs = Archive::from_bytes("inputs.npz", case.inputs.clone())?;
    let mut of_device = |device: usize| {
        let parameters = layout.parameters.iter().enumerate();
        parameters.map(|(i, shape)| inputs.read(&format!("arg{i}.dev{device}"), shape.expect_array()?)).collect()
    };
    let arguments = (0..devices).map(&mut of_device).collect::<Result<Vec<Vec<Literal>>>>()?;
    let mut expected = Archive::from_bytes("expected.npz", case.expected.clone())?;
    let Case { info, .. } = case;
    let tolerance = Tolerance { rtol: info.rtol, atol: info.atol, signed_zero: info.signed_zero };
    let (mut differences, mut count) = (Vec::new(), 0);
    for (device, result) in grid::evaluate(&module, arguments)?.iter().enumerate() {
        for (i, leaf) in result.leaves().into_iter().enumerate() {
            let name = format!("out{i}.dev{device}");
            let shape: &ArrayShape = leaf.array_shape();
            let difference = tolerance.difference(&expected.read(&name, shape)?, leaf);
            differences.extend(difference.map(|difference| format!("{name} {shape}: {difference}")));
            count += 1;
        }
    }
    assert_eq!(count, expected.names().len(), "{}: as many outputs as expected", case.name);
    Ok(differences)
}

#[test]
fn programs_of_one_device_agree() {
    let cases = corpus::suite("multi_device").unwrap();
    let cases: Vec<&Case> =
        cases.iter().filter(|case| ["replicas", "partitions"].contains(&&*case.info.form)).collect();
    assert_eq!(cases.len(), 46);
    let failure = |case: &&Case| match differences(case) {
        Ok(differences) if differences.is_empty() => None,
        Ok(differences) => Some(format!("{}: {}", case.name, differences.join("; "))),
        Err(error) => Some(format!("{}: {error}", case.name)),
    };
    let failures: Vec<String> = cases.iter().filter_map(failure).collect();
    assert!(failures.is_empty(), "{} of {} cases fail:\n{}", failures.len(), cases.len(), failures.join("\n"));
}
