//! `xla-tests fuzz`: runs random programs for a time or a count; shrinks and keeps failures.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressStyle};
use xla_tests::campaign::{Campaign, Finding, Summary};
use xla_tests::generate::Family;
use xla_tests::grid_programs::kinds_for;

use super::Outcome;
use super::check::Platform;
use super::devices;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    platform: Platform,
    /// Only this family of programs; can be repeated.
    #[arg(long, value_parser = family)]
    family: Vec<Family>,
    /// Programs for 2 to N devices, compared with the evaluator over the grid, instead of programs for one device.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=64))]
    #[arg(conflicts_with_all = ["each_pass", "family", "jobs"])]
    devices: Option<u64>,
    /// First seed [default: from the clock].
    #[arg(long)]
    seed: Option<u64>,
    /// Number of programs of each family.
    #[arg(long)]
    programs: Option<u64>,
    /// Seconds after which no program is started; 60 if neither this nor `--programs` is given.
    #[arg(long)]
    seconds: Option<u64>,
    /// Number of programs run at the same time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Folder for failing programs, as files for `tests/regressions`
    #[arg(long, default_value = "target/fuzz")]
    keep: PathBuf,
    /// Maximum number of failures.
    #[arg(long, default_value_t = 20)]
    most_failures: usize,
    /// Time limit of one program, in seconds.
    #[arg(long, default_value_t = 60)]
    patience: u64,
}

fn family(name: &str) -> Result<Family, String> {
    let names = || Family::ALL.map(Family::name).join(", ");
    Family::from_name(name).ok_or_else(|| format!("there are {}", names()))
}

pub fn run(arguments: Arguments) -> Outcome {
    let seconds = arguments.seconds.or(arguments.programs.is_none().then_some(60));
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() << 20);
    let own = std::env::current_exe()?.into_os_string().into_string().map_err(|_| "a path that is not Unicode")?;
    let platform = arguments.platform.platform;
    let mut worker = vec![own, "worker".into(), "--platform".into(), platform.clone()];
    worker.extend(arguments.platform.each_pass.then(|| "--each-pass".into()));
    worker.extend(arguments.platform.target.words());
    let target = arguments.platform.target.name().map(|name| format!(" for {name}")).unwrap_or_default();
    // An invalid target would make every worker fail, so it is checked first.
    let registry = arguments.platform.target.registry("cpu")?;
    let campaign = Campaign {
        families: if arguments.family.is_empty() { Family::ALL.to_vec() } else { arguments.family },
        first_seed: arguments.seed.unwrap_or_else(clock),
        programs: arguments.programs,
        time: seconds.map(Duration::from_secs),
        jobs: arguments.jobs,
        worker,
        keep: arguments.keep,
        most_failures: arguments.most_failures,
        patience: Duration::from_secs(arguments.patience),
    };
    if let Some(most) = arguments.devices {
        let compiler = registry.get(&platform)?.compiler();
        return devices::run(&campaign, most, kinds_for(&*compiler));
    }
    println!("random programs{target} from seed {}", campaign.first_seed);
    let bar = bar(&campaign);
    let told = AtomicUsize::new(0);
    let summary = campaign.run(&|summary| {
        for finding in &summary.findings[told.swap(summary.findings.len(), Ordering::Relaxed)..] {
            bar.suspend(|| println!("{}", describe(finding, &target)));
        }
        bar.set_position(if campaign.programs.is_some() { summary.total() } else { bar.elapsed().as_secs() });
        bar.set_message(message(summary));
    })?;
    bar.finish_and_clear();
    report(&summary, &target);
    Ok(if summary.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn bar(campaign: &Campaign) -> ProgressBar {
    let length = match (campaign.programs, campaign.time) {
        (Some(programs), _) => programs * campaign.families.len() as u64,
        (None, time) => time.map_or(0, |time| time.as_secs()),
    };
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {wide_bar} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn message(summary: &Summary) -> String {
    format!("{} programs, {} failures", summary.total(), summary.findings.len())
}

fn describe(finding: &Finding, target: &str) -> String {
    let Finding { family, seed, failure, path, instructions, .. } = finding;
    let (family, path) = (family.name(), path.display());
    format!("{family}:{seed}{target} {:?}: {}\n  {instructions} instructions: {path}", failure.kind, failure.message)
}

fn report(summary: &Summary, target: &str) {
    let counts: Vec<String> = summary.programs.iter().map(|(family, count)| format!("{family} {count}")).collect();
    println!("{}{target}, {} instructions ({})", message(summary), summary.instructions, counts.join(", "));
}
