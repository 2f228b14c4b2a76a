//! A missing library is an error that says how to install MPI.

use std::process::Command;
use std::time::Duration;

use xla_mpi::Mpi;

/// Variable that the library reads once per process, so the test runs again with it.
const VARIABLE: &str = "XLARS_MPI_LIBRARY";

#[test]
fn a_missing_library_is_an_error_with_advice() {
    if std::env::var_os(VARIABLE).is_some_and(|path| path == "/missing/libmpi.so") {
        let text = Mpi::new("cpu", 2, Duration::from_secs(1)).unwrap_err().to_string();
        assert!(text.starts_with("MPI cannot be loaded\n/missing/libmpi.so: "), "{text}");
        assert!(text.contains("pip install mpich") && text.contains("mpiexec -n 4 PROGRAM"), "{text}");
        assert!(text.contains("XLARS_MPI_LIBRARY=PATH"), "{text}");
        return;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let run = again.args(["--exact", "a_missing_library_is_an_error_with_advice"]).env(VARIABLE, "/missing/libmpi.so");
    let output = run.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
