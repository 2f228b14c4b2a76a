//! `cargo xtask gpu-report`: everything that is to be known about this machine's GPU, in one note.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::shell::{output, program, root, run as run_program, xla_command};
use crate::{corpus, finish, packages, test_backend};

pub const HELP: &str = "\
For a machine with an NVIDIA GPU: the conformance suite, the corpus, the bandwidth of kernels beside a copy by the driver,
the cost of a launch, the benchmark programs (beside JAX where python3 has one that sees the GPU), and compute-sanitizer where it is
found. Writes docs/results/gpu-DEVICE-DATE.md and .json. Without a GPU it says so and fails.

  --quick    smaller sizes, fewer repetitions

Where there is no Rust, carry the commands `xla` and `xla-tests` with tests/gpu and the programs, and run
`python3 tests/gpu/report.py --help`.
";

pub fn run(mut args: Arguments) -> Result<()> {
    let quick = args.contains("--quick");
    finish(args)?;
    packages::ensure()?;
    let xla = xla_command()?;
    let platforms = output(program(&xla, &["platforms"])).context("`xla platforms` failed")?;
    if let Some(reason) = no_gpu(&platforms) {
        bail!("there is no GPU to report on: {reason}");
    }
    let tests = test_backend::tests_command("gpu")?;
    let cases = corpus::SUITES.iter().map(|suite| corpus::unpack(suite)).collect::<Result<Vec<_>>>()?;
    let cases = cases.first().and_then(|folder| folder.parent()).context("there are no suites")?;
    let bench = corpus::unpack("bench")?;
    let results = root().join("docs/results");
    fs::create_dir_all(&results)?;
    let mut command = program("python3", &["tests/gpu/report.py"]);
    let options: [(&str, &Path); 6] = [
        ("--xla", &xla),
        ("--tests", &tests),
        ("--corpus", cases),
        ("--bench", &bench),
        ("--programs", Path::new("tests/conformance/programs")),
        ("--out", &results),
    ];
    for (name, path) in options {
        command.arg(name).arg(path);
    }
    command.args(quick.then_some("--quick"));
    run_program(command)
}

/// The reason that `xla platforms` lists no device of platform gpu; `None` if it does.
fn no_gpu(platforms: &str) -> Option<String> {
    let line = platforms.lines().find_map(|line| line.strip_prefix("gpu: "));
    match line {
        None => Some("this build has no platform gpu".to_owned()),
        Some(line) if line.ends_with(" device") || line.ends_with(" devices") => None,
        Some(line) => Some(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_gpu_is_explained() {
        assert_eq!(no_gpu("cpu: 1 device\ngpu: 2 devices\n  device 0: H200\n"), None);
        let absent = no_gpu("gpu: cannot be used here: there is no driver\n").unwrap();
        assert_eq!(absent, "cannot be used here: there is no driver");
        assert_eq!(no_gpu("gpu-emulated: 1 device\n").unwrap(), "this build has no platform gpu");
    }
}
