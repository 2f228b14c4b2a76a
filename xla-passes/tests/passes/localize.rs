//! Tests of programs of each device made from programs on global values: programs in `programs/localize.hlo`, their
//! local forms or the reasons for a refusal in a snapshot. Each device has the results that the joined program has.

use std::fmt::Write as _;

use xla_hlo::eval::grid;
use xla_hlo::{ArrayShape, Literal, Scalar, VerifiedModule, text};
use xla_passes::join::join_devices;
use xla_passes::localize;

use super::join;

/// Returns an array whose elements depend on the device and the parameter.
fn argument(shape: &ArrayShape, device: usize, parameter: usize) -> Literal {
    let value = |i: usize| Scalar::from_i64(shape.element_type(), (100 * device + 40 * parameter + i) as i64);
    Literal::from_fn(shape, value).unwrap()
}

#[test]
fn programs_of_each_device_agree_with_the_joined_program() {
    let mut report = String::new();
    for case in include_str!("programs/localize.hlo").split("// === ").skip(1) {
        let (name, source) = case.split_once('\n').unwrap();
        let module = VerifiedModule::new(text::parse_module(source).unwrap()).unwrap();
        let outcome = localize(&module);
        assert_eq!(outcome.is_err(), name.starts_with("refused"), "{name}: {outcome:?}");
        writeln!(report, "// === {name}").unwrap();
        let local = match outcome {
            Ok(local) => local,
            Err(error) => {
                writeln!(report, "{error}\n").unwrap();
                continue;
            }
        };
        let [arguments, results] = [&local.arguments, &local.results]
            .map(|list| list.iter().map(|sharding| format!("{:?}", sharding.kind)).collect::<Vec<_>>().join(" "));
        writeln!(report, "// arguments: {arguments}\n// results: {results}\n{}", &*local.module).unwrap();
        let layout = local.module.entry_layout();
        let joined = join_devices(&module).unwrap();
        // Only `localize` chooses a sharding that the program leaves open, and keeps the partial values of each device.
        let is_comparable = joined.arguments.iter().zip(&local.arguments).all(|(a, b)| a.sharding == *b);
        if !is_comparable || name.ends_with("not yet reduced") {
            assert!(is_comparable || name.contains("leaves open"), "{name}");
            continue;
        }
        let is_whole = |i: usize| joined.arguments[i].parts.iter().all(|part| *part == joined.arguments[i].parts[0]);
        let of_device = |device: usize| {
            let parameters = layout.parameters.iter().enumerate();
            // A replicated argument is equal on all devices.
            let argument = |(i, shape): (usize, &xla_hlo::Shape)| {
                argument(shape.expect_array().unwrap(), if is_whole(i) { 0 } else { device }, i)
            };
            parameters.map(argument).collect::<Vec<Literal>>()
        };
        let devices: Vec<Vec<Literal>> = (0..joined.devices).map(of_device).collect();
        let expected = join::run(&joined, &devices);
        let actual = grid::evaluate(&local.module, devices).unwrap();
        let leaves = |result: &Literal| result.leaves().into_iter().cloned().collect::<Vec<Literal>>();
        assert_eq!(actual.iter().map(leaves).collect::<Vec<_>>(), expected, "{name}");
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("localize", report);
    });
}
