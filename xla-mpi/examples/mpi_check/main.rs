//! Checks of collectives by MPI: `mpiexec -n 4 mpi_check CHECK`. `cargo xtask mpi` runs all of them.
//!
//! ```text
//! transport      messages between the processes keep the contract of transports
//! agree DEVICES  random collectives over processes with this number of devices each equal the evaluator's
//! large DEVICES  collectives on large arrays equal the results in one process
//! stuck          process 1 does not arrive: the others end with an error that names it
//! frozen         process 1 is stopped by the system: the others end with an error that names it
//! abort          a failure in process 1 ends the others long before the time-out
//! platforms      process 1 connects a client of another platform: all processes end with an error that names both
//! killed         process 1 kills itself: the others end
//! measure        times of all-reduces
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to the person who runs it")]

#[expect(dead_code, reason = "shared with the tests of xla-service, which use all of it")]
#[path = "../../../xla-service/tests/collective/cases.rs"]
mod cases;
#[path = "../../../xla-service/tests/collective/contract.rs"]
mod contract;
#[expect(dead_code, reason = "shared with the tests of xla-service, which use all of it")]
#[path = "../../../xla-service/tests/collective/support.rs"]
mod support;

mod agree;
mod failures;
mod job;
mod large;
mod measure;

use std::process::ExitCode;

use xla_hlo::Error;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["agree", devices] => agree::run(devices.parse().unwrap_or(1)),
        ["large", devices] => large::run(devices.parse().unwrap_or(1)),
        ["transport"] => job::transport().and_then(|transport| contract::check(transport, &|| {})),
        ["stuck"] => failures::stuck(),
        ["frozen"] => failures::frozen(),
        ["abort"] => failures::abort(),
        ["platforms"] => failures::platforms(),
        ["killed"] => failures::killed(),
        ["measure"] => measure::run(),
        _ => Err(Error::invalid_argument(
            "usage: mpi_check transport | agree DEVICES | large DEVICES | stuck | frozen | abort | platforms | killed |
             measure",
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
