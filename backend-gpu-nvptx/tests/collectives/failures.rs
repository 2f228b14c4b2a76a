//! Errors of NCCL, and runs that are cancelled.

use std::time::Instant;

use xla_hlo::ElementType::S32;
use xla_hlo::{Error, VerifiedModule};
use xla_service::{Buffer, CancelToken, Client, Dispatch, Donate, ExecuteOptions, LoadedExecutable};
use xla_tests::multi_device::launch;

use super::{DEVICES, PATIENCE, REDUCTIONS, agrees, arguments, calls, compiled, module, simulated};

/// Runs a program that must fail, and then once more with success. Returns the error.
fn fails_once(client: &Client) -> String {
    let module = module(REDUCTIONS, S32, "add");
    let program = compiled(client, &module);
    let start = Instant::now();
    let error = launch(&program, &arguments(&module), Donate::default()).unwrap_err();
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    agrees(client, &module, 0.0);
    error.to_string()
}

/// Checks that the first clique was aborted, and that a second one was created.
fn is_created_anew(log: &str) {
    let first = log.lines().take_while(|line| !line.starts_with("ncclCommAbort")).collect::<Vec<_>>().join("\n");
    assert_eq!(calls(&first, "ncclCommInitRank"), DEVICES, "{log}");
    assert_eq!(calls(log, "ncclCommAbort"), DEVICES, "{log}");
    // All devices, again, and four groups of two.
    assert_eq!(calls(log, "ncclCommInitRank"), 2 * DEVICES + 4 * 2, "{log}");
}

#[test]
fn a_call_that_fails_ends_all_devices() {
    let log = simulated("failures::a_call_that_fails_ends_all_devices", "fault=ncclAllReduce:2", |client| {
        let error = fails_once(client);
        for part in ["ncclAllReduce failed: ncclSystemError (unhandled system error)", "devices [0, 1, 2, 3]", "%all"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    });
    log.iter().for_each(|log| is_created_anew(log));
}

#[test]
fn an_error_of_the_work_ends_all_devices() {
    let log = simulated("failures::an_error_of_the_work_ends_all_devices", "async=ncclAllReduce:3", |client| {
        let error = fails_once(client);
        for part in ["the work of NCCL failed: ncclRemoteError", "rank 2", "all"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclCommAbort") >= DEVICES));
}

#[test]
fn a_clique_that_cannot_be_created_is_an_error() {
    let options = "fault=ncclCommInitRank:2";
    simulated("failures::a_clique_that_cannot_be_created_is_an_error", options, |client| {
        let error = fails_once(client);
        assert!(error.contains("ncclCommInitRank failed: ncclSystemError"), "{error}");
    });
}

/// Launches a program with a token; returns the error of the first device.
fn cancelled(program: &LoadedExecutable, module: &VerifiedModule, cancel: &CancelToken) -> Error {
    let lists = program.devices().zip(arguments(module)).map(|(device, list)| {
        list.iter().map(|literal| device.buffer_of_shape(literal, literal.array_shape()).unwrap()).collect()
    });
    let buffers: Vec<Vec<Buffer>> = lists.collect();
    let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
    let dispatch = Dispatch::Queued;
    let options = ExecuteOptions { cancel: Some(cancel.clone()), dispatch, ..ExecuteOptions::default() };
    let results = match program.launch(&lists, &options) {
        Ok(results) => results,
        Err(error) => return error,
    };
    std::thread::sleep(std::time::Duration::from_millis(50));
    cancel.cancel();
    results[0].completion().wait().unwrap_err()
}

#[test]
fn work_that_does_not_end_can_be_cancelled() {
    let log = simulated("failures::work_that_does_not_end_can_be_cancelled", "stuck=ncclAllReduce:1", |client| {
        let module = module(REDUCTIONS, S32, "add");
        let program = compiled(client, &module);
        let start = Instant::now();
        let error = cancelled(&program, &module, &CancelToken::new());
        assert!(start.elapsed() < PATIENCE, "{error}: {:?}", start.elapsed());
        assert!(matches!(error, Error::Cancelled(_)), "{error}");
        agrees(client, &module, 0.0);
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclCommAbort") >= DEVICES));
}
