//! Errors of NCCL, and runs that are cancelled.

use std::time::{Duration, Instant};

use xla_hlo::ElementType::S32;
use xla_hlo::{Error, Result, VerifiedModule};
use xla_service::collective::Timeouts;
use xla_service::{Buffer, CancelToken, Client, DeviceResults, Dispatch, Donate, ExecuteOptions, LoadedExecutable};
use xla_tests::multi_device::launch;

use super::{DEVICES, LOOP, PATIENCE, REDUCTIONS, agrees, arguments, calls, client_with, compiled, module, simulated};

/// Runs a program that must fail, and then once more with success. Returns the error.
fn fails_once(client: &Client, program: &str) -> String {
    let module = module(program, S32, "add");
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
        let error = fails_once(client, REDUCTIONS);
        for part in ["ncclAllReduce failed: ncclSystemError (unhandled system error)", "devices [0, 1, 2, 3]", "%all"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    });
    log.iter().for_each(|log| is_created_anew(log));
}

#[test]
fn an_error_of_the_work_ends_all_devices() {
    let log = simulated("failures::an_error_of_the_work_ends_all_devices", "async=ncclAllReduce:3", |client| {
        let error = fails_once(client, REDUCTIONS);
        for part in ["the work of NCCL failed: ncclRemoteError", "rank 2", "all"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclCommAbort") >= DEVICES));
}

/// The host waits for the condition of the loop, and thus for the work of NCCL.
#[test]
fn an_error_of_work_in_a_loop_ends_all_devices() {
    let name = "failures::an_error_of_work_in_a_loop_ends_all_devices";
    let log = simulated(name, "async=ncclAllReduce:6", |client| {
        let error = fails_once(client, LOOP);
        assert!(error.contains("the work of NCCL failed: ncclRemoteError"), "{error}");
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclCommAbort") == DEVICES));
}

#[test]
fn work_that_takes_too_long_ends_all_devices() {
    let name = "failures::work_that_takes_too_long_ends_all_devices";
    let log = simulated(name, "stuck=ncclAllReduce:6", |_| {
        let limits = Timeouts { warn: Duration::from_millis(100), end: Duration::from_secs(5) };
        let error = fails_once(&client_with(DEVICES, limits).unwrap(), LOOP);
        for part in ["NCCL has not completed the collective of GPUs [0, 1, 2, 3]", "%all", "a device is stuck"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclCommAbort") == DEVICES));
}

#[test]
fn a_clique_that_cannot_be_created_is_an_error() {
    let options = "fault=ncclCommInitRank:2";
    let log = simulated("failures::a_clique_that_cannot_be_created_is_an_error", options, |client| {
        let error = fails_once(client, REDUCTIONS);
        assert!(error.contains("ncclCommInitRank failed: ncclSystemError"), "{error}");
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclCommAbort") == 1), "rank 0 was created");
}

/// Launches a program with a token, without waiting for it.
fn begin(program: &LoadedExecutable, module: &VerifiedModule, cancel: &CancelToken) -> Result<Vec<DeviceResults>> {
    let lists = program.devices().zip(arguments(module)).map(|(device, list)| {
        list.iter().map(|literal| device.buffer_of_shape(literal, literal.array_shape()).unwrap()).collect()
    });
    let buffers: Vec<Vec<Buffer>> = lists.collect();
    let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
    let dispatch = Dispatch::Queued;
    let options = ExecuteOptions { cancel: Some(cancel.clone()), dispatch, ..ExecuteOptions::default() };
    program.launch(&lists, &options)
}

/// Waits for a launch that must fail, and returns the error of the first device.
fn error_of(begun: Result<Vec<DeviceResults>>) -> Error {
    begun.map_or_else(|error| error, |results| results[0].completion().wait().unwrap_err())
}

/// Cancels a program whose work does not end, in a test with this name, and then runs it with success.
fn ends_when_cancelled(test: &str, program: &str, options: &str) {
    let log = simulated(test, options, |client| {
        let module = module(program, S32, "add");
        let program = compiled(client, &module);
        let start = Instant::now();
        let token = CancelToken::new();
        let begun = begin(&program, &module, &token);
        std::thread::sleep(Duration::from_millis(50));
        token.cancel();
        let error = error_of(begun);
        assert!(start.elapsed() < PATIENCE, "{error}: {:?}", start.elapsed());
        assert!(matches!(error, Error::Cancelled(_)), "{error}");
        agrees(client, &module, 0.0);
    });
    assert!(log.is_none_or(|log| calls(&log, "ncclCommAbort") >= DEVICES));
}

#[test]
fn work_that_does_not_end_can_be_cancelled() {
    let name = "failures::work_that_does_not_end_can_be_cancelled";
    ends_when_cancelled(name, REDUCTIONS, "stuck=ncclAllReduce:1");
}

#[test]
fn loops_whose_work_does_not_end_can_be_cancelled() {
    let name = "failures::loops_whose_work_does_not_end_can_be_cancelled";
    ends_when_cancelled(name, LOOP, "stuck=ncclAllReduce:7");
}

/// The second launch is cancelled while its work waits for that of the first one.
#[test]
fn work_that_has_not_begun_is_not_aborted() {
    let name = "failures::work_that_has_not_begun_is_not_aborted";
    let log = simulated(name, "stuck=ncclAllReduce:1", |client| {
        let module = module(LOOP, S32, "");
        let program = compiled(client, &module);
        let other = program.on_devices(&[1, 2, 3, 0]).unwrap();
        let tokens = [CancelToken::new(), CancelToken::new()];
        let pause = |millis| std::thread::sleep(Duration::from_millis(millis));
        let first = begin(&program, &module, &tokens[0]);
        pause(500);
        let second = begin(&other, &module, &tokens[1]);
        pause(500);
        tokens[1].cancel();
        pause(4000);
        tokens[0].cancel();
        for begun in [first, second] {
            let error = error_of(begun);
            assert!(matches!(error, Error::Cancelled(_)), "{error}");
        }
        agrees(client, &module, 0.0);
    });
    // Only the clique of the first launch.
    assert!(log.is_none_or(|log| calls(&log, "ncclCommAbort") == DEVICES));
}
