//! `cargo xtask test-backend`: the conformance suite for one platform.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::shell::{cargo, metadata, program, root, run as run_program};
use crate::simulated_gpu::{self, Installed};
use crate::{build, finish, packages};

pub const HELP: &str = "\
cargo xtask test-backend NAME: tests everything that a backend must do, in levels, and reports gaps, operations that the host
evaluates, and the operation to lower next.

  0 registration   1 memory, copies, streams, transfers   2 operations by element type
  3 fusions, control flow, aliasing, donation   4 corpus   5 generated programs   6 resilience

  --level N[,N]    only these levels
  --filter TEXT    only cases whose identifier contains TEXT
  --shard K/N      one of N disjoint parts of the cases, such as 1/2
  --report FORM    text, html (a page, target/conformance-NAME.html) or json
  --output FILE    file of the report
  --expected FILE  the expected failures (expected-failures.txt of the backend's crate, if there is one)
  --generated N    number of generated programs of each family
  --jobs N         number of cases run at the same time
  --workers N      number of processes that cases run in, so that a lost device or an endless kernel costs one case (platform
                   gpu: --jobs; else 0, which is this process)
  --patience S     seconds for one case (300)
  --log FILE       each result is appended to it as it comes, as a line of JSON
  --quick          smaller sizes and fewer programs
  --target-cpu CPU platform cpu generates code for another processor: v1, v2, v3, v4 of x86-64, znver4, znver5, sapphirerapids,
                   several with commas, or all; without --level, levels 2, 3 and 5. Code is run without what this machine
                   lacks; for named processors it is also generated with everything, and the evaluator runs the program
  --sanitize       memory of platform cpu that nobody has written to holds something else in each run
  --device KIND    the device: `gpu --device emulated` is platform gpu-emulated, the same kernels run by the host;
                   `gpu --device simulated` is platform gpu with a driver that interprets its code and reports errors in it
  --libraries      with that driver, cuBLASLt, cuDNN, cuFFT and NCCL that report wrong calls
  --path DIR       a backend crate outside of this workspace: runs that crate's own conformance test

NAME is a platform: cpu, interpreter, template, ... or optimized:NAME, the evaluator after the passes of NAME.
";

/// Options with a value that are handed on to `xla-tests conformance`.
const HANDED_ON: &[&str] = &[
    "--level",
    "--filter",
    "--shard",
    "--report",
    "--output",
    "--generated",
    "--jobs",
    "--workers",
    "--patience",
    "--log",
];

pub fn run(mut args: Arguments) -> Result<()> {
    let path: Option<PathBuf> = args.opt_value_from_str("--path")?;
    let expected: Option<PathBuf> = args.opt_value_from_str("--expected")?;
    let device: Option<String> = args.opt_value_from_str("--device")?;
    let target_cpu: Option<String> = args.opt_value_from_str("--target-cpu")?;
    let quick = args.contains("--quick");
    let libraries = args.contains("--libraries");
    let sanitize = args.contains("--sanitize");
    let mut words: Vec<String> = Vec::new();
    for &option in HANDED_ON {
        if let Some(value) = args.opt_value_from_str::<_, String>(option)? {
            words.extend([option.to_owned(), value]);
        }
    }
    let name: Option<String> = args.opt_free_from_str()?;
    finish(args)?;
    if let Some(path) = path {
        return outside(&path, words.is_empty() && expected.is_none() && !quick);
    }
    let name = name.context("which platform? `cargo xtask test-backend NAME`; `--help` lists the options")?;
    let is_simulated = (name.as_str(), device.as_deref()) == ("gpu", Some("simulated"));
    let name = device.map_or(Ok(name.clone()), |device| on_device(&name, &device))?;
    packages::ensure()?;
    if libraries && !is_simulated {
        bail!("--libraries goes with `gpu --device simulated`; other devices have the libraries that are installed");
    }
    let installed = if libraries { Installed::Libraries } else { Installed::Driver };
    let driver = if is_simulated { Some(simulated_gpu::library(installed)?) } else { None };
    if let Some(driver) = &driver {
        simulated_gpu::unit_tests(installed, driver)?;
    }
    let inner = name.strip_prefix("optimized:").unwrap_or(&name);
    let Home { folder, feature } = Home::of(inner);
    let declared = expected.or_else(|| Some(Path::new(&folder).join("expected-failures.txt")));
    words.extend(quick.then(|| "--quick".to_owned()));
    words.extend(sanitize.then(|| "--sanitize".to_owned()));
    if let Some(file) = declared.filter(|file| root().join(file).exists()) {
        words.extend(["--expected".to_owned(), file.display().to_string()]);
    }
    let tests = tests_command(&feature)?;
    if let Some(cpus) = target_cpu {
        return on_target_cpus(&tests, &name, &cpus, &words);
    }
    let mut command = program(tests, &[vec!["conformance".to_owned(), name], words].concat());
    if let Some(driver) = &driver {
        simulated_gpu::provide(&mut command, driver);
    }
    run_program(command)
}

/// Processors of `--target-cpu all`: the levels of x86-64, and two of each vendor.
const TARGET_CPUS: &[&str] = &["v1", "v2", "v3", "v4", "znver4", "znver5", "sapphirerapids"];

/// Levels 2, 3 and 5 with code for the registers that processors of the last twenty years differ in, but for this
/// machine's own, which all other tests run. Each processor has its share of the cases.
pub fn other_processors() -> Result<()> {
    let levels = other_levels();
    if levels.is_empty() {
        println!("code generation pretends to be other processors on x86-64 alone");
        return Ok(());
    }
    let tests = tests_command("cpu")?;
    for (index, level) in levels.iter().enumerate() {
        let shard = format!("{}/{}", index + 1, levels.len());
        let words = ["--quick", "--sanitize", "--shard", &shard].map(str::to_owned);
        on_target_cpus(&tests, "cpu", level, &words)?;
    }
    Ok(())
}

#[cfg(target_arch = "x86_64")]
fn other_levels() -> &'static [&'static str] {
    // A machine with AVX-512 has level 4 and can run code for level 3; other machines have level 3.
    if is_x86_feature_detected!("avx512vl") { &["v1", "v3"] } else { &["v1"] }
}

#[cfg(not(target_arch = "x86_64"))]
fn other_levels() -> &'static [&'static str] {
    &[]
}

/// The suite with code for each of some processors.
fn on_target_cpus(tests: &Path, platform: &str, cpus: &str, words: &[String]) -> Result<()> {
    let cpus: Vec<&str> = if cpus == "all" { TARGET_CPUS.to_vec() } else { cpus.split(',').collect() };
    let levels: &[&str] = if words.iter().any(|word| word == "--level") { &[] } else { &["--level", "2,3,5"] };
    let levels: Vec<String> = levels.iter().map(|&word| word.to_owned()).collect();
    let mut failed = Vec::new();
    for cpu in cpus {
        // The levels of x86-64 are in every machine that has the next one; of others this machine may lack something.
        let is_level = cpu.trim_start_matches("x86-64-").starts_with('v') || cpu == "x86-64";
        let compiled = (!is_level).then(|| format!("compiled:{platform}"));
        for platform in [Some(platform.to_owned()), compiled].into_iter().flatten() {
            println!("\n{platform} with code for {cpu}");
            let first = ["conformance", &platform, "--target-cpu", cpu].map(str::to_owned).to_vec();
            if run_program(program(tests, &[first, levels.clone(), words.to_vec()].concat())).is_err() {
                failed.push(format!("{platform} for {cpu}"));
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("these failed: {}", failed.join(", ")) }
}

/// The platform whose code is another one's, on another device.
fn on_device(name: &str, device: &str) -> Result<String> {
    match (name, device) {
        ("gpu", "emulated") => Ok("gpu-emulated".to_owned()),
        ("gpu", "host") => bail!("the device is called emulated now: `gpu --device emulated`"),
        ("gpu", "gpu" | "simulated") => Ok(name.to_owned()),
        _ => bail!(
            "platform {name} has no device '{device}'; `gpu --device emulated` and `gpu --device simulated` are all there is"
        ),
    }
}

/// Package and feature of a platform.
struct Home {
    /// The folder of its crate.
    folder: String,
    /// The Cargo feature that has it, if one has.
    feature: String,
}

impl Home {
    /// A platform has the name of its crate and of its feature, except the GPU platforms.
    fn of(platform: &str) -> Home {
        match platform {
            "gpu" | "gpu-emulated" => Home { folder: "backend-gpu-nvptx".to_owned(), feature: "gpu".to_owned() },
            name => Home { folder: format!("backend-{name}"), feature: name.to_owned() },
        }
    }
}

/// Builds `xla-tests` with the feature of a backend, if there is one, and returns its path.
pub fn tests_command(backend: &str) -> Result<PathBuf> {
    let metadata = metadata()?;
    let feature = format!("xla-tests/{backend}");
    let features: &[&str] = if has_feature(&metadata, backend)? { &["--features", &feature] } else { &[] };
    build::binary("xla-tests", features)
}

/// Whether the crate of the tests has a feature of that name.
fn has_feature(metadata: &serde_json::Value, name: &str) -> Result<bool> {
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let tests = packages.iter().find(|package| package["name"] == "xla-tests");
    Ok(tests.context("the workspace has no crate xla-tests")?["features"].get(name).is_some())
}

/// Runs the test `conformance` of a crate that is not a member of this workspace.
fn outside(folder: &Path, plain: bool) -> Result<()> {
    if !plain {
        bail!("--path runs the crate's own test, which takes no options; what it tries is written there");
    }
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    if !folder.join("Cargo.toml").exists() {
        bail!("{} has no Cargo.toml", folder.display());
    }
    packages::ensure()?;
    let mut command = cargo(&["test", "--release", "--test", "conformance", "--", "--nocapture"]);
    command.current_dir(folder);
    run_program(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_those_of_the_manifest() {
        let metadata = metadata().unwrap();
        assert!(!has_feature(&metadata, "interpreter").unwrap());
        assert!(!has_feature(&metadata, "abacus").unwrap());
    }

    #[test]
    fn devices_have_platforms() {
        assert_eq!(on_device("gpu", "emulated").unwrap(), "gpu-emulated");
        let error = on_device("gpu", "host").unwrap_err().to_string();
        assert!(error.contains("`gpu --device emulated`"), "{error}");
        assert_eq!(on_device("gpu", "simulated").unwrap(), "gpu");
        let error = on_device("cpu", "host").unwrap_err().to_string();
        assert!(error.contains("platform cpu has no device 'host'"), "{error}");
        assert_eq!(Home::of("gpu-emulated").folder, "backend-gpu-nvptx");
        assert_eq!(Home::of("acme").folder, "backend-acme");
    }

    #[test]
    fn what_is_missing_is_told() {
        let error = run(Arguments::from_vec(vec![])).unwrap_err().to_string();
        assert!(error.contains("which platform?"), "{error}");
        let arguments = ["--path", "nowhere", "--quick"].map(Into::into).to_vec();
        let error = run(Arguments::from_vec(arguments)).unwrap_err().to_string();
        assert!(error.contains("takes no options"), "{error}");
    }
}
