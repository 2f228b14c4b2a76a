//! `xla opt`: a module as passes leave it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use xla::hlo::{Error, Result};
use xla::passes::{PassEvent, PassObserver, PassOptions, Pipeline, TargetProfile, registry};
use xla::service::{HloPasses, optimize};

use super::failure::{BadInput, Failure, Outcome};
use super::output;
use super::program::ProgramArg;
use super::session::{PlatformArg, Session};

const EXAMPLES: &str = "\
Examples:
  xla opt module.hlo                                  the module as it is when the platform's backend gets it
  xla opt module.hlo --print-after-all                and what every pass on the way made of it
  xla opt module.hlo --until fuse                     stop after the first run of a pass or stage
  xla opt module.hlo --passes simplify-tuples,dead-code
                                                      these passes alone
  xla opt --list-passes                               every pass, and the platform's pipeline

To find the pass that breaks a program: the result of --until is a module that `xla run` takes.";

/// Print a module after the platform's passes, or after chosen ones
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The program: a file of HLO text (its format is told by its content), or - for standard input
    #[arg(value_name = "MODULE", required_unless_present = "list_passes")]
    module: Option<PathBuf>,
    #[command(flatten)]
    platform: PlatformArg,
    /// Run these passes instead of the platform's pipeline
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', conflicts_with = "until")]
    passes: Vec<String>,
    /// Stop after the first run of this pass or stage of the platform's pipeline
    #[arg(long, value_name = "PASS")]
    until: Option<String>,
    /// Also print the module after every pass that changed it
    #[arg(long)]
    print_after_all: bool,
    /// List every pass, and the platform's pipeline, and do nothing else
    #[arg(long)]
    list_passes: bool,
    /// The file to write; else standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the passes.
pub fn run(session: &Session, args: &Args) -> Outcome {
    let platforms = session.registry();
    let platform = session.platform(&platforms, &args.platform)?;
    let mut options = session.compile_options();
    options.passes = PassOptions { verify: true, until: args.until.clone(), ..PassOptions::default() };
    let passes = platform.compiler().passes(&options)?;
    if args.list_passes {
        return Ok(output::write(args.output.as_deref(), listing(platform.name(), passes.as_ref()).as_bytes())?);
    }
    let passes = chosen(args, platform.name(), passes)?;
    if let Some(until) = args.until.as_deref().filter(|until| !passes.pipeline.names().contains(until)) {
        return Err(unknown_step(until, platform.name(), &passes.pipeline));
    }
    let (_, module) = ProgramArg::new(args.module.clone().unwrap_or_default()).module()?;
    let printer = Printer::default();
    let observer = args.print_after_all.then_some(&printer as &dyn PassObserver);
    let (module, _) = optimize(module, &passes, &options, observer)?;
    let text = printer.text() + &module.to_string();
    Ok(output::write(args.output.as_deref(), text.as_bytes())?)
}

/// The passes to run, and the target they are for.
fn chosen(args: &Args, platform: &str, passes: Option<HloPasses>) -> Outcome<HloPasses> {
    if !args.passes.is_empty() {
        let pipeline = registry::pipeline(args.passes.iter().map(|name| name.trim())).bad_input()?;
        let profile = passes.map_or_else(TargetProfile::generic, |passes| passes.profile);
        return Ok(HloPasses { pipeline, profile });
    }
    passes.ok_or_else(|| {
        Failure::usage(format!(
            "platform {platform} has no passes of its own; name some with --passes (--list-passes lists them)"
        ))
    })
}

fn unknown_step(until: &str, platform: &str, pipeline: &Pipeline) -> Failure {
    let names = pipeline.names().join(", ");
    Failure::usage(format!("the pipeline of platform {platform} has no pass or stage {until:?}; it has {names}"))
}

fn listing(platform: &str, passes: Option<&HloPasses>) -> String {
    let mut text = "Passes:\n".to_string();
    let width = registry::list().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, what) in registry::list() {
        let _ = writeln!(text, "  {name:width$}  {what}");
    }
    let _ = match passes {
        Some(passes) => write!(text, "\nPipeline of platform {platform}:\n{}", passes.pipeline),
        None => writeln!(text, "\nPlatform {platform} has no pipeline of its own."),
    };
    text
}

/// Collects the module after every pass that changed it.
#[derive(Default)]
struct Printer(Mutex<String>);

impl Printer {
    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PassObserver for Printer {
    fn after(&self, event: &PassEvent<'_>) -> Result<()> {
        let PassEvent { index, path, module, changed, .. } = event;
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match changed {
            true => write!(text, "// {index} {path}:\n{}\n", module),
            false => writeln!(text, "// {index} {path}: no change"),
        };
        written.map_err(|e| Error::internal(format!("cannot print the module: {e}")))
    }
}
