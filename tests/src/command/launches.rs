//! `xla-tests launches`: launches over overlapping sets of devices, some with a failing device.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use xla_tests::launches::Campaign;

use super::Outcome;
use super::target::TargetArguments;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Platform.
    #[arg(long, default_value = "cpu")]
    platform: String,
    #[command(flatten)]
    target: TargetArguments,
    /// Number of devices.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=64))]
    devices: u64,
    /// Number of threads that launch.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
    /// Number of launches that succeed.
    #[arg(long, default_value_t = 10_000)]
    launches: u64,
    /// Number of launches with a failing device.
    #[arg(long, default_value_t = 1_000)]
    failures: u64,
    /// Number of generated programs for each number of devices.
    #[arg(long, default_value_t = 4)]
    programs: u64,
    /// Seed of programs, sets of devices and faults.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Maximum number of seconds from the failure of a device to the end of its launch.
    #[arg(long, default_value_t = 1.0)]
    within: f64,
    /// Number of seconds after which the command fails if no launch ends.
    #[arg(long, default_value_t = 60)]
    patience: u64,
}

/// Maximum number of problems that are printed.
const PRINTED: usize = 20;

pub fn run(arguments: Arguments) -> Outcome {
    let Arguments { platform, target, devices, threads, launches, failures, programs, seed, within, patience } =
        arguments;
    let campaign = Campaign {
        devices: devices as usize,
        threads: threads as usize,
        launches,
        failures,
        programs,
        seed,
        prompt: Duration::try_from_secs_f64(within)?,
        patience: Duration::from_secs(patience),
    };
    let registry = target.registry(&platform)?;
    let bar = ProgressBar::new(launches + failures);
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    let start = Instant::now();
    let summary = campaign.run(&registry, &platform, &|summary| {
        bar.set_position(summary.launches);
        bar.set_message(format!("{} problems", summary.problems.len()));
    })?;
    bar.finish_and_clear();
    for problem in summary.problems.iter().take(PRINTED) {
        println!("{problem}");
    }
    println!(
        "{platform}: {} launches on {} devices from {threads} threads, {} runs, {:.1?}: {} problems",
        summary.launches,
        devices,
        summary.runs,
        start.elapsed(),
        summary.problems.len()
    );
    println!("{} launches with a failing device, the slowest ended after {:.1?}", summary.failures, summary.slowest);
    Ok(if summary.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
