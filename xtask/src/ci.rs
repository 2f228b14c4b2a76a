//! `cargo xtask ci`: everything a change must pass, quickest answers first.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use pico_args::Arguments;

use crate::shell::{cargo, line, output, program, run as run_program};
use crate::{
    book, build, corpus, downstream, examples, finish, gpu_report, mpi, packages, ptxas, simulated_gpu, test,
    test_backend, tidy, wheel,
};

pub const HELP: &str = "\
Formatting, tidy, clippy and rustdoc without warnings, all tests, the book, code for other processors and on emulated ones,
collectives over several processes under mpiexec, applications around compiled programs, kernels on a simulated GPU, the benchmark programs as machine code for GPUs with estimates of
it (where ptxas can be had), the bundle for machines with a GPU, the JAX plugin as a wheel that trains a model, and the corpus on
every platform. Stops at the first step that fails. Programs are built for release, or in the Cargo profile that the variable
XTASK_PROFILE names.

  --from STEP     only this step and those after it, such as rustdoc or \"simulated gpu\". The steps cross, mpi and wheel run
                  in this order, in parallel with the others that follow the tests
  --without-kit   leaves the conformance kit of the template out of the tests, for a caller that runs it on a copy of the template
";

/// Tests that `--without-kit` leaves out.
const KIT: &str = "conformance";
/// Test of the tidy step, which has run before the tests.
const TIDY: &str = "tests::the_repository_is_tidy";

/// Parts of the run that the command line decides.
struct Scope {
    /// Names of tests that the step `test` skips.
    skipped: &'static [&'static str],
}

/// Name and work of a step.
type Step = (&'static str, fn(&Scope) -> Result<()>);

const STEPS: &[Step] = &[
    ("setup", |_| setup()),
    ("format", |_| run_program(cargo(&["fmt", "--all", "--check"]))),
    ("tidy", |_| tidy::check()),
    ("clippy", |_| clippy()),
    ("test", |scope| test::all(None, scope.skipped)),
    ("rustdoc", |_| rustdoc()),
    ("book", |_| book::build()),
    ("downstream", |_| downstream::check()),
    ("other processors", |_| test_backend::other_processors()),
    ("examples", |_| examples::check()),
    ("simulated gpu", |_| simulated_gpu::check(&test_backend::tests_command("gpu")?)),
    ("ptxas", |_| ptxas::quick_if_possible()),
    ("gpu bundle", |_| gpu_report::check()),
    ("corpus", |_| corpus::own(&corpus::Selection::default())),
];

/// Last step before a second process starts.
const LAST_ALONE: &str = "test";

/// Steps that a second process runs, in order, in parallel with those after [`LAST_ALONE`]. They use one core, or wait
/// for downloads, most of the time. Both processes run `xla-tests`, which "gpu bundle" builds with other features: that
/// step is late there, and "cross" is early here.
const IN_PARALLEL: &[Step] =
    &[("cross", |_| test::cross_if_possible()), ("mpi", |_| mpi::check()), ("wheel", |_| wheel::check())];

pub fn run(mut args: Arguments) -> Result<()> {
    let from: Option<String> = args.opt_value_from_str("--from")?;
    let scope = Scope { skipped: if args.contains("--without-kit") { &[TIDY, KIT] } else { &[TIDY] } };
    let is_second = args.contains("--second");
    finish(args)?;
    if is_second {
        return in_order(IN_PARALLEL, &scope);
    }
    let name = from.unwrap_or_else(|| STEPS[0].0.to_owned());
    if let Some(steps) = steps_from(IN_PARALLEL, &name) {
        return in_order(steps, &scope);
    }
    let names = || STEPS.iter().chain(IN_PARALLEL).map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let steps =
        steps_from(STEPS, &name).with_context(|| format!("there is no step '{name}'; steps are {}", names()))?;
    let alone = steps.iter().position(|(step, _)| *step == LAST_ALONE).map_or(0, |last| last + 1);
    in_order(&steps[..alone], &scope)?;
    let second = SecondProcess::start()?;
    in_order(&steps[alone..], &scope)?;
    second.finish()
}

/// Returns the step of a name and those after it.
fn steps_from(steps: &'static [Step], name: &str) -> Option<&'static [Step]> {
    steps.iter().position(|(step, _)| *step == name).map(|start| &steps[start..])
}

/// Runs steps up to the first that fails, and prints how long each took.
fn in_order(steps: &[Step], scope: &Scope) -> Result<()> {
    let mut times = Vec::new();
    for (name, step) in steps {
        let start = Instant::now();
        step(scope).with_context(|| format!("ci step '{name}'"))?;
        times.push(format!("{name} {:.0} s", start.elapsed().as_secs_f64()));
    }
    if !times.is_empty() {
        println!("\nci: passed: {}", times.join(", "));
    }
    Ok(())
}

/// Process that runs [`IN_PARALLEL`]. Its output goes to a file, which is printed at its end.
struct SecondProcess {
    process: Child,
    log: PathBuf,
}

impl SecondProcess {
    fn start() -> Result<SecondProcess> {
        let log = build::target()?.join("ci-second.log");
        let file = File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = program(std::env::current_exe()?, &["ci", "--second"]);
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        println!("\n$ {} > {}", line(&command), log.display());
        Ok(SecondProcess { process: command.spawn().context("cannot start a second process")?, log })
    }

    fn finish(mut self) -> Result<()> {
        let status = self.process.wait()?;
        print!("{}", String::from_utf8_lossy(&fs::read(&self.log)?));
        ensure!(status.success(), "the second process failed, see {}", self.log.display());
        Ok(())
    }
}

impl Drop for SecondProcess {
    /// Ends the process and all that it has started if the other steps have failed.
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            let _ = output(program("kill", &["--", &format!("-{}", self.process.id())]));
            let _ = self.process.wait();
        }
    }
}

/// Installs the packages of the build, and starts to install packages of later steps.
fn setup() -> Result<()> {
    packages::ensure()?;
    packages::start_ensure_cross();
    Ok(())
}

fn clippy() -> Result<()> {
    run_program(cargo(&[
        "clippy",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--examples",
        "--",
        "--deny",
        "warnings",
    ]))?;
    // The build that runs programs for GPUs without LLVM.
    run_program(cargo(&[
        "clippy",
        "--package",
        "backend-gpu-nvptx",
        "--no-default-features",
        "--",
        "--deny",
        "warnings",
    ]))
}

fn rustdoc() -> Result<()> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "--deny warnings");
    run_program(command)
}
