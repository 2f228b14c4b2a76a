//! Test of the NVTX ranges of runs and thunks.

use std::fs;
use std::path::Path;

use backend_gpu_nvptx::{GpuOptions, platform_with};
use xla_service::{Buffer, CompileOptions};

use super::device_time::CHAIN;
use super::{arguments, client_of, compiled};

/// File name of the profiler of tests/simulated-libraries, found by the loader.
const PROFILER: &str = "libsimulated-nvtx.so";

#[test]
fn runs_and_their_thunks_are_ranges_of_a_profiler() {
    // A process has one profiler, and this one writes the ranges of all threads to one file.
    if std::env::var_os("NEXTEST").is_none() {
        return;
    }
    let Some(client) = client_of(platform_with(GpuOptions { profiler: Some(PROFILER.into()) })) else { return };
    let run = |graphs| {
        let program = compiled(&client, CHAIN, &CompileOptions { graphs, ..CompileOptions::default() });
        let list = arguments(&program, 1).remove(0);
        program.execute(&list.iter().collect::<Vec<&Buffer>>()).unwrap()[0].wait().unwrap();
        let thunks = program.thunks().unwrap().thunks.iter();
        thunks.map(|thunk| format!("  {}\n", thunk.name)).collect::<String>()
    };
    let thunks = run(false);
    run(true);
    let file = std::env::temp_dir().join(format!("simulated-nvtx-{}.txt", std::process::id()));
    // Without the simulated profiler programs run as well.
    if is_installed() {
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("chain\n{thunks}chain\n"));
        fs::remove_file(file).unwrap();
    }
}

/// Whether the loader would find the profiler.
fn is_installed() -> bool {
    let folders = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| Path::new(&folder).join(PROFILER).exists())
}
