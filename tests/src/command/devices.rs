//! `xla-tests fuzz --devices`: random programs for several devices, in a worker process.

use std::process::ExitCode;
use std::time::Instant;

use xla_tests::campaign::Campaign;
use xla_tests::grid_programs::{Kinds, program};
use xla_tests::isolated::Isolated;
use xla_tests::worker::{Reply, Request};

use super::Outcome;

/// Runs programs for 2 to `most` devices; writes the failing ones to the campaign's folder.
pub fn run(campaign: &Campaign, most: u64, kinds: Kinds) -> Outcome {
    let Campaign { first_seed, programs, time, keep, patience, .. } = campaign;
    println!("random programs for 2 to {most} devices from seed {first_seed}");
    std::fs::create_dir_all(keep)?;
    let (start, mut worker) = (Instant::now(), Isolated::new(campaign.worker.clone(), *patience));
    let (mut count, mut instructions, mut failures) = (0, 0, 0);
    while programs.is_none_or(|programs| count < programs)
        && time.is_none_or(|time| start.elapsed() < time)
        && failures < campaign.most_failures
    {
        let seed = first_seed + count;
        let devices = (2 + seed % (most - 1)) as usize;
        count += 1;
        let problem = match worker.ask(&Request::Devices { seed, devices })? {
            Reply::Agree(size) => {
                instructions += size;
                continue;
            }
            Reply::Differ(failure) => format!("{:?}: {}", failure.kind, failure.message),
            Reply::Invalid(message) => format!("invalid: {message}"),
        };
        failures += 1;
        let path = keep.join(format!("devices_{seed}_{devices}.hlo"));
        if let Ok(program) = program(seed, devices, kinds) {
            std::fs::write(&path, program.module.to_string())?;
        }
        println!("seed {seed} for {devices} devices: {problem}\n  {}", path.display());
    }
    println!("{count} programs, {failures} failures, {instructions} instructions");
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
