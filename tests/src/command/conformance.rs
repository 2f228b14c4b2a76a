//! `xla-tests conformance`: runs the suite for one platform, with progress and a report.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use xla_tests::conformance::{CaseResult, Expected, Level, Observer, PATIENCE, Shard, Suite};

use super::Outcome;
use super::target::TargetArguments;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Platform; `optimized:NAME` is the evaluator after that platform's passes, `compiled:NAME` the evaluator after
    /// its compiler.
    platform: String,
    #[command(flatten)]
    target: TargetArguments,
    /// Only these levels, such as `0,1`.
    #[arg(long, value_delimiter = ',', value_parser = level)]
    level: Vec<Level>,
    /// Only cases whose identifier contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// One of N disjoint parts of the cases, such as 1/2.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Format of the report
    #[arg(long, value_enum, default_value = "text")]
    report: Form,
    /// File of the report; by default standard output, for html target/conformance-NAME.html
    #[arg(long)]
    output: Option<PathBuf>,
    /// File of expected failures.
    #[arg(long)]
    expected: Option<PathBuf>,
    /// Only these suites of the corpus.
    #[arg(long, value_delimiter = ',')]
    corpus: Vec<String>,
    /// Number of generated programs of each family.
    #[arg(long)]
    generated: Option<u64>,
    /// Number of cases run at the same time [default: number of cores, at most 8 with --workers].
    #[arg(long)]
    jobs: Option<usize>,
    /// Number of processes, each of which runs one case at a time. If a case loses the device, crashes or hangs, it is
    /// reported, and the others continue in a new process. 0 = all in this process [default: --jobs on platform gpu,
    /// otherwise 0].
    #[arg(long)]
    workers: Option<usize>,
    /// Time limit of one case; a case that exceeds it fails.
    #[arg(long, value_name = "SECONDS", default_value_t = PATIENCE.as_secs_f64(), value_parser = seconds)]
    patience: f64,
    /// File to which each result is appended immediately: a line of JSON, with the whole message.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Run the cases named by lines on standard input; `--workers` starts such processes.
    #[arg(long, hide = true)]
    serve: bool,
    /// Smaller sizes and fewer programs.
    #[arg(long)]
    quick: bool,
    /// List the cases without running them.
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Text,
    Html,
    Json,
}

fn level(text: &str) -> Result<Level, String> {
    let found = text.parse().ok().and_then(Level::from_number);
    found.ok_or_else(|| format!("levels are 0 to {}", Level::ALL.len() - 1))
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n| Duration::try_from_secs_f64(*n).is_ok() && *n > 0.0);
    number.ok_or_else(|| "a number of seconds is needed".to_string())
}

/// Maximum number of processes with their own device; more of them would need more device memory than they save time.
const MOST_WORKERS: usize = 8;

/// Returns 0 if the platform passes, 1 if not; an error (2) if a platform or file does not exist.
pub fn run(arguments: Arguments) -> Outcome {
    let suite = suite(&arguments)?;
    if arguments.serve {
        suite.serve(std::io::stdin().lock(), std::io::stdout().lock())?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.list {
        suite.cases().iter().for_each(|case| println!("{}", case.id));
        return Ok(ExitCode::SUCCESS);
    }
    let log = arguments.log.as_deref().map(appended).transpose()?;
    let mut progress = Progress { bar: ProgressBar::hidden(), failed: 0, log };
    let report = suite.run(&mut progress)?;
    progress.bar.finish_and_clear();
    let text = match arguments.report {
        Form::Text => report.text(),
        Form::Html => report.html(),
        Form::Json => report.json(),
    };
    let page = || PathBuf::from(format!("target/conformance-{}.html", report.platform.replace(':', "-")));
    match arguments.output.or_else(|| (arguments.report == Form::Html).then(page)) {
        None => print!("{text}"),
        Some(path) => {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(&path, text)?;
            if arguments.report != Form::Text {
                print!("{}", report.text());
            }
            println!("{}", path.display());
        }
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn suite(arguments: &Arguments) -> Result<Suite, Box<dyn std::error::Error>> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let workers = arguments.workers.unwrap_or_else(|| match arguments.platform.as_str() {
        "gpu" => arguments.jobs.unwrap_or_else(|| cores().min(MOST_WORKERS)),
        _ => 0,
    });
    let jobs = if workers > 0 { workers } else { arguments.jobs.unwrap_or_else(cores) };
    let registry = arguments.target.registry(&arguments.platform)?;
    let mut suite = Suite::new(&registry, &arguments.platform).filter(&arguments.filter).jobs(jobs);
    suite = suite.patience(Duration::from_secs_f64(arguments.patience));
    if workers > 0 {
        suite = suite.workers(serving()?);
    }
    if let Some(shard) = arguments.shard {
        suite = suite.shard(shard);
    }
    if !arguments.level.is_empty() {
        suite = suite.levels(&arguments.level);
    }
    if let Some(path) = &arguments.expected {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        suite = suite.expected(Expected::parse(&text)?);
    }
    if !arguments.corpus.is_empty() {
        suite = suite.corpus(&arguments.corpus.iter().map(String::as_str).collect::<Vec<_>>());
    }
    if let Some(programs) = arguments.generated {
        suite = suite.generated(programs);
    }
    Ok(if arguments.quick { suite.quick() } else { suite })
}

/// Returns the command line of this process, with the option to run cases on request.
fn serving() -> std::io::Result<Vec<String>> {
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    Ok(std::iter::once(program).chain(std::env::args().skip(1)).chain(["--serve".to_string()]).collect())
}

/// Opens a file for appending.
fn appended(path: &Path) -> Result<File, String> {
    let opened = File::options().create(true).append(true).open(path);
    opened.map_err(|error| format!("{}: {error}", path.display()))
}

struct Progress {
    bar: ProgressBar,
    failed: usize,
    log: Option<File>,
}

impl Observer for Progress {
    fn begin(&mut self, cases: usize) {
        self.bar = ProgressBar::new(cases as u64);
        if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}") {
            self.bar.set_style(style);
        }
    }

    fn done(&mut self, result: &CaseResult) {
        if let Some(log) = &mut self.log
            && let Err(error) = writeln!(log, "{}", serde_json::json!(result))
        {
            self.bar.suspend(|| eprintln!("the results are not appended any more: {error}"));
            self.log = None;
        }
        if let Some(message) = result.outcome.failure() {
            self.failed += 1;
            let first = message.lines().next().unwrap_or_default().to_string();
            self.bar.suspend(|| eprintln!("FAILED {}: {first}", result.id));
        }
        let failed = if self.failed > 0 { format!("{} failed, ", self.failed) } else { String::new() };
        self.bar.set_message(format!("{failed}{}", result.id));
        self.bar.inc(1);
    }
}
