//! Tests of collectives by NCCL on the simulated GPUs, against the evaluator over the grid.
//!
//! Each test starts itself again with four devices and a log of the calls of NCCL. Without the simulated libraries the
//! tests do nothing.

mod failures;

use std::process::Command;
use std::time::Duration;

use xla_hlo::ElementType::{self, BF16, C64, C128, F8E5M2, F16, F32, F64, Pred, S8, S16, S32, S64, U8, U16, U32, U64};
use xla_hlo::eval::grid;
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, Literal, Scalar, VerifiedModule};
use xla_service::collective::Timeouts;
use xla_service::{Client, ClientOptions, CompileOptions, Donate, LoadedExecutable, PlatformRegistry};
use xla_tests::multi_device::launch;

/// Number of devices of the tests.
const DEVICES: usize = 4;

const MOVES: &str = include_str!("programs/moves.hlo");
const REDUCTIONS: &str = include_str!("programs/reductions.hlo");
const LOOP: &str = include_str!("programs/loop.hlo");

fn client(devices: usize) -> Option<Client> {
    client_with(devices, Timeouts::default())
}

fn client_with(devices: usize, collective_timeouts: Timeouts) -> Option<Client> {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_gpu_nvptx::platform());
    let options = ClientOptions { devices: Some(devices), collective_timeouts, ..ClientOptions::default() };
    Client::with_options(&registry, "gpu", options).ok()
}

/// Runs `work` on four simulated devices in a process of its own, with options of the simulated NCCL. Returns the log
/// of NCCL's calls; `None` in that process, and without the simulated libraries. `name` is the name of the test.
fn simulated(name: &str, options: &str, work: impl FnOnce(&Client)) -> Option<String> {
    simulated_in(name, options, &[], work)
}

/// As [`simulated`], with more environment variables.
fn simulated_in(name: &str, options: &str, variables: &[(&str, &str)], work: impl FnOnce(&Client)) -> Option<String> {
    if std::env::var("SIMULATED_NCCL").is_ok_and(|options| options.contains("log=")) {
        work(&client(DEVICES).unwrap());
        return None;
    }
    let first = client(1)?.first_device();
    let has_nccl = first.libraries().iter().any(|(library, found)| library == "NCCL" && found.is_ok());
    if !has_nccl || !first.description().model.starts_with("Simulated") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", &format!("collectives::{name}")]).env("SIMULATED_GPU", format!("devices={DEVICES}"));
    again.envs(variables.iter().copied());
    let done = again.env("SIMULATED_NCCL", format!("log={},{options}", log.display())).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}\n{}", text(&done.stdout), text(&done.stderr));
    assert!(text(&done.stdout).contains("1 passed"), "{}", text(&done.stdout));
    assert!(!text(&done.stderr).contains("misuse"), "{}", text(&done.stderr));
    Some(std::fs::read_to_string(log).unwrap_or_default())
}

fn module(text: &str, ty: ElementType, combiner: &str) -> VerifiedModule {
    let text = text.replace("TYPE", &ty.to_string()).replace("COMBINER", combiner);
    VerifiedModule::new(parse_module(&text).unwrap()).unwrap()
}

fn compiled(client: &Client, module: &VerifiedModule) -> LoadedExecutable {
    client.compile(module, &CompileOptions { excess_precision: false, ..CompileOptions::default() }).unwrap()
}

/// Returns the argument of each device, of numbers that are not sums of powers of two.
fn arguments(module: &VerifiedModule) -> Vec<Vec<Literal>> {
    let shape = module.entry_layout().parameters[0].expect_array().unwrap().clone();
    (0..DEVICES).map(|device| vec![argument(&shape, device)]).collect()
}

fn argument(shape: &ArrayShape, device: usize) -> Literal {
    let ty = shape.element_type();
    let value = |i: usize| {
        let number = (i * 5 + device * 7) % 11;
        match () {
            () if ty == Pred => Scalar::Pred((number + device).is_multiple_of(3)),
            () if ty.is_complex() => Scalar::Complex(number as f64 / 7.0, device as f64 / 3.0),
            () if ty.is_float() => Scalar::Float(0.25 + number as f64 / 7.0),
            () if ty.is_signed() => Scalar::Signed(number as i64 - 5),
            () => Scalar::Unsigned(number as u64),
        }
    };
    Literal::from_fn(shape, value).unwrap()
}

/// Runs a program on all devices and compares it with the evaluator: exactly, or up to a relative error.
fn agrees(client: &Client, module: &VerifiedModule, error: f64) {
    let program = compiled(client, module);
    let expected = grid::evaluate(module, arguments(module)).unwrap();
    for _ in 0..2 {
        let found = launch(&program, &arguments(module), Donate::default()).unwrap();
        compare(&expected, &found, error, module);
    }
    assert_eq!(client.joined_programs(), 0);
}

fn compare(expected: &[Literal], found: &[Literal], error: f64, module: &VerifiedModule) {
    for (device, (expected, found)) in expected.iter().zip(found).enumerate() {
        for (i, (expected, found)) in expected.leaves().into_iter().zip(found.leaves()).enumerate() {
            let is_equal = expected.shape() == found.shape() && is_near(expected, found, error);
            assert!(is_equal, "result {i} of device {device}: {found:?}, expected {expected:?}\n{}", **module);
        }
    }
}

fn is_near(expected: &Literal, found: &Literal, error: f64) -> bool {
    let parts = |literal: &Literal, i| match literal.get(i) {
        Scalar::Complex(real, imaginary) => [real, imaginary],
        Scalar::Float(real) => [real, 0.0],
        Scalar::Pred(_) | Scalar::Signed(_) | Scalar::Unsigned(_) => [0.0; 2],
    };
    let is_near = |i| {
        let pairs = parts(expected, i).into_iter().zip(parts(found, i));
        error > 0.0 && pairs.into_iter().all(|(expected, found)| (expected - found).abs() <= error * expected.abs())
    };
    (0..expected.array_shape().element_count()).all(|i| expected.get(i) == found.get(i) || is_near(i))
}

/// Counts the calls of a function, over all devices.
fn calls(log: &str, function: &str) -> usize {
    log.lines().filter(|line| line.split_whitespace().next() == Some(function)).count()
}

#[test]
fn all_types_are_moved() {
    let types = [Pred, S8, S16, S32, S64, U8, U16, U32, U64, F8E5M2, F16, BF16, F32, F64, C64, C128];
    let log = simulated("all_types_are_moved", "", |client| {
        for ty in types {
            let text = if ty == Pred { MOVES.replace("negate", "not") } else { MOVES.to_string() };
            agrees(client, &module(&text, ty, ""), 0.0);
        }
    });
    let Some(log) = log else { return };
    // Each program runs twice. The columns of eight rows are eight calls.
    let launches = 2 * types.len();
    assert_eq!(calls(&log, "ncclAllGather"), launches * DEVICES * (1 + 8 + 1));
    assert_eq!(calls(&log, "ncclBroadcast"), launches * DEVICES);
    // Of the three pairs of the permute, one is a copy.
    assert_eq!(calls(&log, "ncclSend"), launches * (DEVICES * DEVICES + 2));
    assert_eq!(calls(&log, "ncclRecv"), launches * (DEVICES * DEVICES + 2));
    // All devices, the three devices of the permute, and four pairs of devices in an order.
    assert_eq!(calls(&log, "ncclCommInitRank"), DEVICES + 3 + 4 * 2);
}

#[test]
fn integers_and_predicates_are_reduced_exactly() {
    let types = [S8, U8, S32, U32, S64, U64];
    let log = simulated("integers_and_predicates_are_reduced_exactly", "", |client| {
        for ty in types {
            for combiner in ["add", "multiply", "minimum", "maximum"] {
                agrees(client, &module(REDUCTIONS, ty, combiner), 0.0);
            }
        }
        for combiner in ["and", "or"] {
            agrees(client, &module(REDUCTIONS, Pred, combiner), 0.0);
        }
    });
    let Some(log) = log else { return };
    let launches = 2 * (types.len() * 4 + 2);
    assert_eq!(calls(&log, "ncclAllReduce"), launches * DEVICES * 2);
    assert_eq!(calls(&log, "ncclReduceScatter"), launches * DEVICES * (1 + 8));
}

#[test]
fn floats_are_reduced_in_an_order_of_the_library() {
    let types = [(F16, 4e-3), (BF16, 4e-2), (F32, 1e-6), (F64, 1e-15)];
    let log = simulated("floats_are_reduced_in_an_order_of_the_library", "", |client| {
        for (ty, error) in types {
            for combiner in ["add", "multiply"] {
                agrees(client, &module(REDUCTIONS, ty, combiner), error);
            }
        }
        agrees(client, &module(REDUCTIONS, C64, "add"), 1e-6);
        agrees(client, &module(REDUCTIONS, C128, "add"), 1e-15);
    });
    let Some(log) = log else { return };
    assert_eq!(calls(&log, "ncclAllReduce"), 2 * (2 * types.len() + 2) * DEVICES * 2, "{log}");
}

#[test]
fn the_service_executes_the_others() {
    let log = simulated("the_service_executes_the_others", "", |client| {
        for ty in [F16, BF16, F32, F64] {
            agrees(client, &module(REDUCTIONS, ty, "minimum"), 0.0);
            agrees(client, &module(REDUCTIONS, ty, "maximum"), 0.0);
        }
        agrees(client, &module(REDUCTIONS, C64, "multiply"), 0.0);
        agrees(client, &module(REDUCTIONS, S16, "add"), 0.0);
        agrees(client, &module(REDUCTIONS, S32, "xor"), 0.0);
    });
    assert!(log.is_none_or(|log| log.is_empty()));
}

#[test]
fn loops_with_collectives_are_in_stream_order() {
    let log = simulated("loops_with_collectives_are_in_stream_order", "", |client| {
        let module = module(LOOP, S32, "");
        let program = compiled(client, &module);
        let thunks = program.thunks().unwrap().to_string();
        assert!(thunks.contains("collective by ncclAllReduce Sum of s32 if NCCL is installed"), "{thunks}");
        agrees(client, &module, 0.0);
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclAllReduce") >= 2 * DEVICES * 2));
}

#[test]
fn launches_of_several_threads_have_one_order() {
    let log = simulated("launches_of_several_threads_have_one_order", "", |client| {
        let module = module(LOOP, S32, "");
        let program = compiled(client, &module);
        let expected = grid::evaluate(&module, arguments(&module)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (program, module, expected) = (&program, &module, &expected);
                scope.spawn(move || {
                    // Ranks are on other devices in each thread.
                    let devices: Vec<usize> = (0..DEVICES).map(|rank| (rank + thread) % DEVICES).collect();
                    let program = program.on_devices(&devices).unwrap();
                    for _ in 0..10 {
                        let found = launch(&program, &arguments(module), Donate::default()).unwrap();
                        compare(expected, &found, 0.0, module);
                    }
                });
            }
        });
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclCommInitRank") == 4 * DEVICES));
}

#[test]
fn an_old_library_is_not_used() {
    let log = simulated("an_old_library_is_not_used", "version=2.13.4", |client| {
        let libraries = client.first_device().libraries();
        let (_, found) = libraries.iter().find(|(library, _)| library == "NCCL").unwrap();
        let error = found.as_ref().unwrap_err().to_string();
        assert!(error.starts_with("NCCL 2.13.4 is too old: version 2.14.0 or newer is needed"), "{error}");
        agrees(client, &module(REDUCTIONS, S32, "add"), 0.0);
    });
    assert!(log.is_none_or(|log| log.is_empty()));
}

#[test]
fn a_library_that_does_not_start_is_not_used() {
    let log = simulated("a_library_that_does_not_start_is_not_used", "fault=ncclGetUniqueId:1", |client| {
        let libraries = client.first_device().libraries();
        let (_, found) = libraries.iter().find(|(library, _)| library == "NCCL").unwrap();
        let error = found.as_ref().unwrap_err().to_string();
        assert!(error.contains("NCCL does not start") && error.contains("ncclGetUniqueId failed"), "{error}");
        agrees(client, &module(REDUCTIONS, S32, "add"), 0.0);
    });
    assert!(log.is_none_or(|log| log.is_empty()));
}

#[test]
fn calls_that_do_not_block_are_refused() {
    let variable = [("NCCL_COMM_BLOCKING", "0")];
    let log = simulated_in("calls_that_do_not_block_are_refused", "", &variable, |client| {
        let libraries = client.first_device().libraries();
        let (_, found) = libraries.iter().find(|(library, _)| library == "NCCL").unwrap();
        let error = found.as_ref().unwrap_err().to_string();
        assert!(error.contains("NCCL_COMM_BLOCKING=0 is not supported"), "{error}");
        agrees(client, &module(REDUCTIONS, S32, "add"), 0.0);
    });
    assert!(log.is_none_or(|log| log.is_empty()));
}

#[test]
fn platform_objects_share_cliques() {
    let log = simulated("platform_objects_share_cliques", "", |first| {
        let module = module(LOOP, S32, "");
        let second = client(DEVICES).unwrap();
        std::thread::scope(|scope| {
            for client in [first, &second] {
                let module = &module;
                scope.spawn(move || (0..5).for_each(|_| agrees(client, module, 0.0)));
            }
        });
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclCommInitRank") == DEVICES));
}

/// Time within which the devices of a failed launch must have ended.
const PATIENCE: Duration = Duration::from_secs(60);
