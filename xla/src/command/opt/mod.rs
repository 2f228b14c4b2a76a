//! `xla opt`: runs passes on a module and reports on the result.

mod bisect;
mod diff;
mod explain;
mod list;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use xla::hlo::{Module, ResultExt, VerifiedModule, text};
use xla::passes::buffers::{BufferOptions, assign_buffers};
use xla::passes::{PassObserver, PassOptions, Pipeline, PipelineReport, TargetProfile, analysis, reference, registry};
use xla::service::{CompileOptions, HloPasses, optimize};

use self::diff::{Detail, Printer};
use super::failure::{BadInput, Failure, Outcome};
use super::form::Form;
use super::output;
use super::program::{ProgramArg, ShapesArg};
use super::session::{PlatformArg, Session};

const EXAMPLES: &str = "\
Examples:
  xla opt module.hlo                                  the module as the platform's backend gets it
  xla opt module.hlo --print-after-all                also the changes of every pass
  xla opt module.hlo --until fuse                     stop after the first run of a pass or stage
  xla opt module.hlo --passes 'inline-calls,[simplify-tuples,dead-code]*'
                                                      these passes alone, the group to a fixed point
  xla opt module.hlo --explain=dot.3                  fusion decisions about %dot.3, and their reasons
  xla opt module.hlo --statistics                     rewrites of each pass and rule
  xla opt module.hlo --cost --memory                  cost of each instruction, memory, values at its peak
  xla opt module.hlo --call-graph --dataflow          call graph, and the values that instructions hold
  xla opt module.hlo --to html -o module.html         the same as a page for a browser
  xla opt --list-passes                               all passes, and the platform's pipeline
  xla opt --list-passes=markdown                      the page of the book that describes each pass

To find the pass, and the rewrite in it, that breaks a program, save the outputs of the evaluator, and compare:
  xla run module.hlo --platform interpreter --inputs-seed 0 --output good.npz
  xla opt module.hlo --bisect 'xla run {module} --platform interpreter --inputs-seed 0 --expect good.npz --rtol 1e-3'";

/// Print a module after the platform's passes, or after others
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Program: HLO or StableHLO, as text or serialised (format detected from the content); - for standard input
    #[arg(value_name = "MODULE", required_unless_present = "list_passes")]
    module: Option<PathBuf>,
    #[command(flatten)]
    shapes: ShapesArg,
    #[command(flatten)]
    platform: PlatformArg,
    /// Passes to run instead of the pipeline, by their names or XLA's (cse, dce, ...); [A,B] is a group, [A,B]* runs to
    /// a fixed point
    #[arg(long, value_name = "A,B,[C,D]*", conflicts_with = "until")]
    passes: Option<String>,
    /// Stop after the first run of this pass or stage of the platform's pipeline
    #[arg(long, value_name = "PASS")]
    until: Option<String>,
    /// Passes to skip
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    without: Vec<String>,
    /// Assume that the platform lacks these operations (cholesky, topk, tanh, ...) or arithmetic on these floats (bf16,
    /// f16, ...)
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    lacks: Vec<String>,
    /// Maximum number of pass runs
    #[arg(long, value_name = "N")]
    max_passes: Option<usize>,
    /// Maximum number of rewrites
    #[arg(long, value_name = "N")]
    max_rewrites: Option<u64>,
    /// Also print the changes of every pass; =full for the whole module after it
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "diff")]
    print_after_all: Option<Detail>,
    /// Instead of the module, print fusion decisions and their reasons, for the named instructions or all
    #[arg(long, value_name = "NAME,...", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(conflicts_with_all = ["print_after_all", "statistics", "cost", "memory", "call_graph", "dataflow", "chains"])]
    explain: Option<String>,
    /// Instead of the module, print the runs, changes and rewrites of each pass, and the applications of each rule;
    /// =json for JSON
    ///
    /// Lists passes in the order of their first runs. A pass that edits the module as a whole counts no rewrites (-).
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    statistics: Option<Report>,
    /// Instead of the module, print the cost of each instruction: arithmetic, bytes; =json for JSON
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    cost: Option<Report>,
    /// Instead of the module, print its memory use and the values at the peak; =json for JSON
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    memory: Option<Report>,
    /// Instead of the module, print its call graph, and how each computation is run; =json for JSON
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    call_graph: Option<Report>,
    /// Instead of the module, print the value that each leaf of each instruction holds; =json for JSON
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    dataflow: Option<Report>,
    /// Instead of the module, print its critical path: the longest chains of dependences; =json for JSON
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    chains: Option<Report>,
    /// Find the pass, and the rewrite in it, after which a shell command on {module} fails
    ///
    /// The command gets the name of a file with the module in place of {module}; exit code 0 means good, 125 unknown,
    /// others bad.
    #[arg(long, value_name = "CMD", conflicts_with_all = ["print_after_all", "explain", "statistics", "cost", "memory", "call_graph", "dataflow", "chains", "max_passes", "max_rewrites"])]
    bisect: Option<String>,
    /// Output format of the module
    #[arg(long, value_name = "FORM", default_value = "hlo", conflicts_with_all = ["print_after_all", "explain", "statistics", "cost", "memory", "call_graph", "dataflow", "chains", "bisect"])]
    to: Form,
    /// List all passes and the platform's pipeline, and exit; =markdown for a page that describes each pass
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    list_passes: Option<Listing>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Format of a report.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Report {
    /// Text
    Table,
    /// JSON
    Json,
}

impl Report {
    fn write<T: Serialize + Display>(self, report: &T) -> String {
        match self {
            Report::Table => report.to_string(),
            Report::Json => analysis::json(report),
        }
    }
}

/// Format of the list of passes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Listing {
    /// One line for each pass, and the pipeline of the platform
    Table,
    /// Markdown with the description of each pass, for every platform
    Markdown,
}

/// Runs the passes.
pub fn run(session: &Session, args: &Args) -> Outcome {
    if let Some(Listing::Markdown) = args.list_passes {
        return Ok(output::write(args.output.as_deref(), reference::page().as_bytes())?);
    }
    let platforms = session.registry();
    let platform = session.platform(&platforms, &args.platform)?;
    let mut options = session.compile_options();
    options.passes = PassOptions {
        verify: true,
        until: args.until.as_deref().map(|name| registry::resolve_alias(name).to_string()),
        max_passes: args.max_passes,
        max_rewrites: args.max_rewrites,
        ..PassOptions::default()
    };
    let passes = platform.compiler().passes(&options)?;
    if args.list_passes.is_some() {
        return Ok(output::write(args.output.as_deref(), list::table(platform.name(), passes.as_ref()).as_bytes())?);
    }
    let mut passes = chosen(args, platform.name(), passes)?;
    passes.profile = passes.profile.without(args.lacks.iter().map(String::as_str)).bad_input()?;
    if let Some(until) = options.passes.until.as_deref().filter(|until| !passes.pipeline.names().contains(until)) {
        return Err(unknown_step(until, platform.name(), &passes.pipeline));
    }
    options.passes.disabled = left_out(&args.without, platform.name(), &passes.pipeline)?;
    let (_, module) = ProgramArg::new(args.module.clone().unwrap_or_default(), args.shapes.clone()).module()?;
    let bytes = match &args.bisect {
        Some(command) => bisect::run(command, args, platform.name(), &module, &passes, &options.passes)?.into_bytes(),
        None => optimized(args, module, &passes, &options)?,
    };
    Ok(output::write(args.output.as_deref(), &bytes)?)
}

/// Runs the passes on the module and returns the requested output.
fn optimized(args: &Args, module: VerifiedModule, passes: &HloPasses, options: &CompileOptions) -> Outcome<Vec<u8>> {
    if let Some(names) = &args.explain {
        return Ok(explain::run(names, module, passes, options)?.into_bytes());
    }
    let printer = args.print_after_all.map(|detail| Printer::new(detail, &module));
    let observer = printer.as_ref().map(|printer| printer as &dyn PassObserver);
    let (module, report) = optimize(module, passes, options, observer)?;
    let reports = reports(args, &module, &report)?;
    if !reports.is_empty() {
        return Ok(reports.into_bytes());
    }
    let mut bytes = printer.map(|printer| printer.into_text().into_bytes()).unwrap_or_default();
    bytes.extend(args.to.write(&module)?);
    Ok(bytes)
}

/// Returns the requested reports on the run of the passes and the optimised module.
fn reports(args: &Args, module: &Module, report: &PipelineReport) -> Outcome<String> {
    let mut text = args.statistics.map(|how| how.write(&report.statistics())).unwrap_or_default();
    if let Some(how) = args.cost {
        text.push_str(&how.write(&analysis::cost::analyze(module)));
    }
    if let Some(how) = args.memory {
        let assignment = assign_buffers(module, &BufferOptions::default())
            .context(|| "--memory needs passes that order the program and insert copies (schedule, insert-copies)")?;
        text.push_str(&how.write(&analysis::memory::report(module, &assignment)));
    }
    if let Some(how) = args.call_graph {
        text.push_str(&how.write(&analysis::call_graph::analyze(module)));
    }
    if let Some(how) = args.dataflow {
        text.push_str(&how.write(&analysis::dataflow::analyze(module)?));
    }
    if let Some(how) = args.chains {
        text.push_str(&how.write(&analysis::reachability::chains(module)));
    }
    Ok(text)
}

/// Returns the passes to run, and the target they are for.
fn chosen(args: &Args, platform: &str, passes: Option<HloPasses>) -> Outcome<HloPasses> {
    if let Some(list) = &args.passes {
        let pipeline = registry::parse(list).bad_input()?;
        let profile = passes.map_or_else(TargetProfile::generic, |passes| passes.profile);
        return Ok(HloPasses { pipeline, profile });
    }
    passes.ok_or_else(|| {
        Failure::usage(format!(
            "platform {platform} has no passes of its own; name some with --passes (--list-passes lists them)"
        ))
    })
}

/// Returns the passes to skip; an error for a name that is not in the pipeline.
fn left_out(names: &[String], platform: &str, pipeline: &Pipeline) -> Outcome<BTreeSet<String>> {
    let known = pipeline.names();
    let checked = |name: &String| match registry::resolve_alias(name) {
        resolved if known.contains(&resolved) => Ok(resolved.to_string()),
        _ => Err(unknown_step(name, platform, pipeline)),
    };
    names.iter().map(checked).collect()
}

fn unknown_step(until: &str, platform: &str, pipeline: &Pipeline) -> Failure {
    let names = pipeline.names();
    let hint = text::did_you_mean(until, names.iter().copied());
    let names = names.join(", ");
    Failure::usage(format!("the pipeline of platform {platform} has no pass or stage {until:?}{hint}; it has {names}"))
}
