//! The command line: subcommands, output streams and exit codes.
//!
//! Results are written to standard output. Standard error gets one error message, progress if it is a terminal, and the
//! log with `-v`. Exit codes: 0 success, 1 failure of the program or the compiler, 2 bad usage or bad input.

mod bench;
mod compile;
mod convert;
mod device_arrays;
mod device_time;
mod devices;
mod expect;
mod failure;
mod file_limit;
mod form;
mod generate;
mod inputs;
mod manifest;
mod measure;
mod opt;
pub mod out_of_memory;
mod output;
mod outputs;
mod panics;
mod platforms;
mod process;
mod profile;
mod program;
mod progress;
mod run;
mod session;
mod signature;
mod threads;
mod trace;

use std::io::Write;
use std::process::ExitCode;
use std::thread;

use clap::{Parser, Subcommand};
use xla::Error;

use failure::{FAILED, Failure, Outcome};
use session::{Common, Session};

/// Stack size of the worker thread. The evaluator and some passes recurse as deep as a program nests.
const STACK_BYTES: usize = 256 << 20;

const EXAMPLES: &str = "\
Examples:
  xla run module.hlo --inputs-seed 0                      compile for this machine, run on generated inputs
  xla run module.hlo --inputs in.npz --output out.npz     arrays in and out, as numpy.savez writes them
  xla bench module.hlo                                    compile time and run time
  xla opt module.hlo                                      the module after the platform's passes
  xla COMMAND --help                                      help of a command, with examples

Exit codes: 0 success, 1 failure of the program, 2 bad usage or bad input.";

/// A retargetable compiler for machine-learning programs
#[derive(Parser, Debug)]
#[command(name = "xla", version, after_help = EXAMPLES, propagate_version = true, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(run::Args),
    Bench(bench::Args),
    Opt(opt::Args),
    Compile(compile::Args),
    Convert(convert::Args),
    Platforms(platforms::Args),
}

/// Parses the command line, runs the subcommand, and reports a failure.
pub fn main() -> ExitCode {
    file_limit::report_as_error();
    let cli = Cli::parse();
    panics::keep_quiet();
    xla::hlo::out_of_memory::set_last_resort(out_of_memory::end);
    let worker = thread::Builder::new().name("xla".to_string()).stack_size(STACK_BYTES).spawn(|| dispatch(cli));
    let outcome = match worker.map(thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(Error::internal("the command panicked").into()),
        Err(e) => Err(Error::resource_exhausted(format!("cannot start a thread: {e}")).into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(failure),
    }
}

fn dispatch(cli: Cli) -> Outcome {
    // The child process traces and logs the work. The process that starts it has no events.
    let starts_child = matches!(&cli.command, Command::Compile(args) if args.starts_child());
    let session = Session::new(cli.common, starts_child)?;
    let outcome = work(&session, cli.command);
    let traced = session.finish();
    outcome.and(traced)
}

fn work(session: &Session, command: Command) -> Outcome {
    match command {
        Command::Run(args) => run::run(session, &args),
        Command::Bench(args) => bench::run(session, &args),
        Command::Opt(args) => opt::run(session, &args),
        Command::Compile(args) => compile::run(session, &args),
        Command::Convert(args) => convert::run(&args),
        Command::Platforms(args) => platforms::run(session, &args),
    }
}

/// Prints the message of a failure and returns its exit code.
fn report(failure: Failure) -> ExitCode {
    let code = failure.exit_code();
    let mut message = format!("error: {}", failure.error);
    if code == FAILED && matches!(failure.error, Error::Internal(_)) {
        if let Some(panic) = panics::last() {
            message.push_str(&format!(" ({panic})"));
        }
        message.push_str("\nThis is a bug in the compiler. Please report it, with the module and the command line.");
    }
    // If standard error is closed, the exit code still indicates the failure.
    let _ = writeln!(std::io::stderr(), "{}", output::escape(&message));
    ExitCode::from(code)
}
