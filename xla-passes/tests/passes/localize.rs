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

/// Functions around a manual computation that each call the previous one twice.
fn nested_calls(levels: usize) -> String {
    let edge = |name: &str, side: &str| {
        format!(
            r##"custom_call_target="xla.sdy.{name}", custom_call_has_side_effect=true, frontend_attributes={{xla.sdy.{side}_shardings="#sdy.sharding_per_value<[<@mesh, [{{}}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{{\"x\"}}>"}}"##
        )
    };
    let (enter, leave) = (edge("GlobalToLocalShape", "in"), edge("LocalToGlobalShape", "out"));
    let mut text = format!(
        r##"HloModule m, num_partitions=2, frontend_attributes={{xla.sdy.meshes="{{mesh = #sdy.mesh<[\"x\"=2]>}}"}}
f0 {{ x = f32[4] parameter(0)
 l = f32[4] custom-call(x), {enter}
 ROOT g = f32[4] custom-call(l), {leave} }}
"##
    );
    for level in 1..=levels {
        let (name, before) = (format!("f{level}"), format!("f{}", level - 1));
        writeln!(text, "{name} {{ x = f32[4] parameter(0)\n y = f32[4] call(x), to_apply={before}").unwrap();
        writeln!(text, " ROOT z = f32[4] call(y), to_apply={before} }}").unwrap();
    }
    text + &format!("ENTRY main {{ x = f32[4] parameter(0)\n ROOT y = f32[4] call(x), to_apply=f{levels} }}")
}

#[test]
fn nested_calls_around_manual_computations_are_limited() {
    let parsed = |levels| VerifiedModule::new(text::parse_module(&nested_calls(levels)).unwrap()).unwrap();
    let few = parsed(3);
    assert!(localize(&few).is_ok() && join_devices(&few).is_ok());
    for (levels, message) in [(60, "makes more than 262144 instructions"), (130, "more than 128 levels deep")] {
        let module = parsed(levels);
        let errors = [localize(&module).unwrap_err(), join_devices(&module).unwrap_err()];
        assert!(errors.iter().all(|error| error.to_string().contains(message)), "{errors:?}");
    }
}
