//! The developer's commands: `cargo xtask COMMAND`. It builds without LLVM.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to the person who runs it")]

mod backend;
mod bench;
mod book;
mod build;
mod ci;
mod corpus;
mod coverage;
mod demo;
mod downstream;
mod emulated;
mod examples;
mod faults;
mod fuzz;
mod gpu_report;
mod jax_tests;
mod link;
mod llvm_names;
mod mpi;
mod mutants;
mod packages;
mod ptxas;
mod python;
mod setup;
mod shell;
mod simulated_gpu;
mod stablehlo_tests;
mod test;
mod test_backend;
mod tidy;
mod verdict;
mod wheel;
mod zoo;

use std::process::ExitCode;

use anyhow::{Result, bail};
use pico_args::Arguments;

/// One verb of `cargo xtask`.
struct Command {
    name: &'static str,
    /// Description on one line.
    about: &'static str,
    /// Its options, printed by `--help`.
    help: &'static str,
    run: fn(Arguments) -> Result<()>,
}

const COMMANDS: &[Command] = &[
    Command { name: "setup", about: "install missing packages: LLVM 22", help: setup::HELP, run: setup::run },
    Command {
        name: "demo",
        about: "build, then run a transformer block and its training step",
        help: demo::HELP,
        run: demo::run,
    },
    Command { name: "test", about: "every test of the workspace", help: test::HELP, run: test::run },
    Command { name: "ci", about: "everything a change must pass", help: ci::HELP, run: ci::run },
    Command { name: "tidy", about: "the house rules that no other tool checks", help: tidy::HELP, run: tidy::run },
    Command {
        name: "corpus",
        about: "run the corpus and compare with its expected outputs",
        help: corpus::HELP,
        run: corpus::run,
    },
    Command {
        name: "coverage",
        about: "which operation works on which element type where",
        help: coverage::HELP,
        run: coverage::run,
    },
    Command {
        name: "test-backend",
        about: "the conformance suite for one platform",
        help: test_backend::HELP,
        run: test_backend::run,
    },
    Command {
        name: "mutants",
        about: "changes of the compiler that no test notices",
        help: mutants::HELP,
        run: mutants::run,
    },
    Command { name: "mpi", about: "collectives over several processes under mpiexec", help: mpi::HELP, run: mpi::run },
    Command { name: "fuzz", about: "random programs and fuzz targets", help: fuzz::HELP, run: fuzz::run },
    Command {
        name: "faults",
        about: "the command under faults of memory, threads, disk and signals",
        help: faults::HELP,
        run: faults::run,
    },
    Command {
        name: "new-backend",
        about: "a backend of your own, from backend-template: registered, building, passing",
        help: backend::NEW_HELP,
        run: backend::new,
    },
    Command {
        name: "remove-backend",
        about: "take a new backend back",
        help: backend::REMOVE_HELP,
        run: backend::remove,
    },
    Command {
        name: "vendor-todo",
        about: "the places that a vendor must change in a backend",
        help: backend::TODO_HELP,
        run: backend::todo,
    },
    Command {
        name: "downstream",
        about: "crates outside of the workspace that use it",
        help: downstream::HELP,
        run: downstream::run,
    },
    Command {
        name: "examples",
        about: "applications around a program that was compiled ahead of time",
        help: examples::HELP,
        run: examples::run,
    },
    Command { name: "book", about: "the book, with its reference of operations", help: book::HELP, run: book::run },
    Command { name: "wheel", about: "the JAX plugin as one file for pip", help: wheel::HELP, run: wheel::run },
    Command {
        name: "ptxas",
        about: "assemble every program for GPUs: resources of kernels, and their least times",
        help: ptxas::HELP,
        run: ptxas::run,
    },
    Command {
        name: "gpu-report",
        about: "all there is to know about a GPU, in steps; a bundle for machines with one",
        help: gpu_report::HELP,
        run: gpu_report::run,
    },
    Command {
        name: "jax-tests",
        about: "JAX's own tests on the plugin, and what it misses of them",
        help: jax_tests::HELP,
        run: jax_tests::run,
    },
    Command {
        name: "stablehlo-tests",
        about: "StableHLO's own tests: functions that are accepted, programs that agree",
        help: stablehlo_tests::HELP,
        run: stablehlo_tests::run,
    },
    Command {
        name: "zoo",
        about: "programs of libraries on JAX: models, samplers, solvers, on ours and on XLA:CPU",
        help: zoo::HELP,
        run: zoo::run,
    },
    Command {
        name: "llvm-names",
        about: "the names of processors that LLVM knows, as data",
        help: llvm_names::HELP,
        run: llvm_names::run,
    },
    Command { name: "bench", about: "time the benchmark programs", help: bench::HELP, run: bench::run },
];

fn main() -> ExitCode {
    match dispatch(Arguments::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(mut args: Arguments) -> Result<()> {
    let Some(name) = args.subcommand()? else {
        print!("{}", overview());
        return Ok(());
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        bail!("no command '{name}'\n\n{}", overview());
    };
    if args.contains(["-h", "--help"]) {
        println!("cargo xtask {name}: {}\n\n{}", command.about, command.help.trim_end());
        return Ok(());
    }
    (command.run)(args)
}

fn overview() -> String {
    let mut text = String::from("cargo xtask COMMAND [--help]\n\n");
    for command in COMMANDS {
        text += &format!("  {:<15}  {}\n", command.name, command.about);
    }
    text + "\nA newcomer wants `cargo xtask demo`, a contributor `cargo xtask ci`.\n"
}

/// Fails when arguments are left that no option took.
fn finish(args: Arguments) -> Result<()> {
    let rest = args.finish();
    if let Some(first) = rest.first() {
        bail!("unknown argument '{}'; `--help` lists the options", first.to_string_lossy());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_commands_and_arguments_are_refused() {
        let error = dispatch(Arguments::from_vec(vec!["polish".into()])).unwrap_err().to_string();
        assert!(error.contains("no command 'polish'") && error.contains("demo"), "{error}");
        let error = finish(Arguments::from_vec(vec!["--fast".into()])).unwrap_err().to_string();
        assert!(error.contains("'--fast'"), "{error}");
    }
}
