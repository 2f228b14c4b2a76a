//! Programs with collectives, run by each of several devices: results are those of the lock-step evaluator, and the
//! engine executes all standard forms.

use std::fs;
use std::path::Path;

use xla_hlo::eval::grid::{self, Grid};
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Literal, Result, Scalar, VerifiedModule};
use xla_service::collective::{Gathering, PlannedCollective};
use xla_service::{Buffer, Client, CompileOptions, ExecuteOptions, LoadedExecutable, OptLevel};

use crate::cases::is_same_array;
use crate::cases::{Case, KINDS};
use crate::platform::clients;
use crate::support::Random;

#[path = "../../../xla-hlo/tests/eval_grid/modules.rs"]
mod modules;

fn compiled(client: &Client, module: &VerifiedModule) -> LoadedExecutable {
    let program = client.compile(module, &CompileOptions::default()).unwrap();
    assert_eq!(client.joined_programs(), 0);
    program
}

/// Runs a program on each device. Returns the results of each.
fn run(program: &LoadedExecutable, arguments: &[Vec<Literal>]) -> Result<Vec<Literal>> {
    let lists = program.devices().zip(arguments).map(|(device, list)| {
        let argument = program.signature().arguments().iter().zip(list);
        argument.map(|(leaf, literal)| device.buffer_of_shape(literal, &leaf.shape)).collect()
    });
    let buffers: Vec<Vec<Buffer>> = lists.collect::<Result<_>>()?;
    let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
    let results = program.launch(&lists, &ExecuteOptions::default())?;
    let literals = results.iter().map(|result| {
        let literals = result.buffers.iter().map(Buffer::to_literal).collect::<Result<_>>()?;
        program.signature().group_results(literals)
    });
    literals.collect()
}

fn random_arguments(
    module: &VerifiedModule,
    mut argument: impl FnMut(usize, &ArrayShape) -> Literal,
) -> Vec<Vec<Literal>> {
    let entry = module.entry();
    let shapes: Vec<_> = entry.parameters().iter().map(|&p| entry[p].shape().as_array().unwrap().clone()).collect();
    let mut list = |_| shapes.iter().enumerate().map(|(number, shape)| argument(number, shape)).collect();
    (0..Grid::of(module).unwrap().device_count()).map(&mut list).collect()
}

/// Returns the programs of the evaluator's tests that run on several devices.
fn programs_of_the_evaluator() -> Vec<VerifiedModule> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../xla-hlo/tests/eval_grid/programs");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().flat_map(|file| modules::modules(&fs::read_to_string(file).unwrap()));
    // Some are programs that the verifier refuses.
    let modules = texts.filter_map(|text| VerifiedModule::new(parse_module(&text).ok()?).ok());
    modules.filter(|module| Grid::of(module).unwrap().device_count() > 1).collect()
}

/// Describes how a device executes its collectives.
fn describe(planned: &[PlannedCollective]) -> String {
    let line = |plan: &PlannedCollective| {
        let place = if plan.in_place { "in place" } else { "on literals" };
        match plan.operation {
            Ok(operation) => format!("  {}: {operation} {place}\n", plan.instruction),
            Err(reason) => format!("  {}: gathers, since {reason} ({place})\n", plan.instruction),
        }
    };
    planned.iter().filter(|plan| plan.device == 0).map(line).collect()
}

#[test]
fn programs_with_a_collective_of_every_type_agree_with_the_evaluator() {
    let clients = clients();
    for (i, &kind) in KINDS.iter().enumerate() {
        for (t, &ty) in ElementType::ALL.iter().enumerate() {
            let random = &mut Random(7_000_000 + t as u64 + 1000 * i as u64);
            let case = std::iter::repeat_with(|| Case::random(kind, ty, random));
            let mut case = case.skip_while(|case| Grid::of(&case.module).unwrap().device_count() == 1);
            let case = case.next().unwrap();
            let arguments = random_arguments(&case.module, |number, shape| case.argument(number, shape, random));
            let expected = grid::evaluate(&case.module, arguments.clone()).unwrap();
            for (client, is_in_place) in &clients {
                let program = compiled(client, &case.module);
                // The second launch uses the plans of the first one.
                for _ in 0..2 {
                    let found = run(&program, &arguments).unwrap();
                    let leaves = |results: &[Literal]| -> Vec<Literal> {
                        results.iter().flat_map(Literal::leaves).cloned().collect()
                    };
                    let (expected, found) = (leaves(&expected), leaves(&found));
                    let is_same = |(a, b): (&Literal, &Literal)| is_same_array(&case, ty, a.bytes(), b.bytes());
                    let agree = expected.len() == found.len() && expected.iter().zip(&found).all(is_same);
                    assert!(agree, "{expected:?}\n{found:?}\n{}", *case.module);
                }
                let planned = program.planned_collectives();
                let operation = if case.has_single_operation() { Ok(()) } else { Err(Gathering::Combiner) };
                let is_expected = |plan: &PlannedCollective| plan.operation.map(drop) == operation;
                assert!(planned.iter().all(is_expected), "{planned:?}\n{}", *case.module);
                let is_used = |plan: &PlannedCollective| plan.in_place == *is_in_place && plan.operation.is_ok();
                assert!(!planned.is_empty(), "{}", *case.module);
                assert!(operation.is_err() || planned.iter().all(is_used), "{planned:?}\n{}", *case.module);
            }
        }
    }
}

/// The programs of the evaluator's tests, with all group modes and control flow, on memory.
#[test]
fn programs_of_the_evaluator_run_in_place() {
    let ([_, (client, _)], mut count) = (clients(), 0);
    for module in programs_of_the_evaluator() {
        let random = &mut Random(count);
        let arguments = random_arguments(&module, |_, shape| {
            Literal::from_fn(shape, |_| random.small_scalar(shape.element_type())).unwrap()
        });
        // Programs that fail are tested on the interpreter; missing members fail only after some time.
        let Ok(expected) = grid::evaluate(&module, arguments.clone()) else { continue };
        assert_eq!(run(&compiled(&client, &module), &arguments).unwrap(), expected, "{}", *module);
        count += 1;
    }
    assert!(count > 40, "{count} programs");
}

/// Layouts, empty arrays, groups of one device, control flow, and everything that gathers.
#[test]
fn the_engine_executes_standard_forms() {
    let mut report = String::new();
    let clients = clients();
    for text in modules::modules(include_str!("programs/forms.hlo")) {
        let module =
            parse_module(&text).and_then(VerifiedModule::new).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let random = &mut Random(5);
        let arguments = random_arguments(&module, |_, shape| {
            Literal::from_fn(shape, |_| random.small_scalar(shape.element_type())).unwrap()
        });
        let expected = grid::evaluate(&module, arguments.clone()).unwrap();
        report += &format!("{}\n", module.name());
        for (client, _) in &clients {
            let options = CompileOptions { opt_level: OptLevel::O0, ..CompileOptions::default() };
            let program = client.compile(&module, &options).unwrap();
            assert_eq!(run(&program, &arguments).unwrap(), expected, "{}", *module);
            report += &describe(&program.planned_collectives());
        }
    }
    insta::assert_snapshot!(report);
}

/// Platforms with thunks have no arrays of dynamic size.
#[test]
fn arrays_of_dynamic_size_are_gathered() {
    let module = parse_module(include_str!("programs/dynamic_size.hlo")).and_then(VerifiedModule::new).unwrap();
    let [(client, _), _] = clients();
    let arguments = random_arguments(&module, |_, shape| Literal::zeros(shape).unwrap());
    let program = compiled(&client, &module);
    let expected = grid::evaluate(&module, arguments.clone()).unwrap();
    assert_eq!(run(&program, &arguments).unwrap(), expected);
    let planned = program.planned_collectives();
    assert_eq!(planned.len(), 2);
    assert!(planned.iter().all(|plan| plan.operation == Err(Gathering::DynamicSize)), "{planned:?}");
}

/// Roots that differ among the members, or that are no members: one device fails, and all end with its error.
#[test]
fn errors_name_the_instruction_and_the_device() {
    let module = parse_module(include_str!("programs/roots.hlo")).and_then(VerifiedModule::new).unwrap();
    for (client, is_in_place) in clients() {
        let program = compiled(&client, &module);
        let root =
            |root: i32| Literal::from_fn(&ArrayShape::new(ElementType::S32, []), |_| Scalar::Signed(root.into()));
        let run = |roots: [i32; 2]| {
            let x = || Literal::zeros(&ArrayShape::new(ElementType::S32, [4])).unwrap();
            run(&program, &roots.map(|number| vec![x(), root(number).unwrap()]))
        };
        for (roots, cause) in [
            ([0, 1], "the members of a group select different roots: [1, 0]"),
            ([2, 2], "the root 2 is not in its group of 2 devices"),
            ([-1, -1], "the root -1 is not in its group of 2 devices"),
        ] {
            let error = run(roots).unwrap_err().to_string();
            let instruction = if is_in_place { "thunk t0 (%r): " } else { "evaluating r of computation main: " };
            let expected = [", device ", " (replica ", instruction, cause];
            assert!(expected.iter().all(|part| error.contains(part)), "{error}");
        }
        // The run after a failure is not affected.
        assert!(run([1, 1]).is_ok());
        assert!(program.planned_collectives().iter().all(|plan| plan.in_place == is_in_place));
    }
}
