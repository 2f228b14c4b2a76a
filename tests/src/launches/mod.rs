//! Campaign of launches over overlapping sets of devices, from several threads of one client.
//!
//! Most launches execute generated programs, and their results must equal the evaluator's. In the others one device
//! fails: all devices must end with one error, which names that device, within a time limit. The campaign fails if
//! no launch ends for a long time, which a deadlock would cause.

mod plan;
mod programs;
mod steps;
mod worker;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use xla::{Client, PlatformRegistry};
use xla_hlo::{Error, Result};
use xla_service::ClientOptions;

pub use plan::Campaign;
use programs::Programs;
use worker::{Ended, Worker};

use crate::grid_programs::kinds_for;

/// Outcome of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Number of launches, including failing ones.
    pub launches: u64,
    /// Number of runs of these launches on a device.
    pub runs: u64,
    /// Number of launches that failed as intended.
    pub failures: u64,
    /// Longest time from the failure of a device to the end of its launch.
    pub slowest: Duration,
    /// Wrong results, unexpected errors and late ends.
    pub problems: Vec<String>,
}

impl Campaign {
    /// Runs the campaign on a platform. Calls `watch` after each launch. Returns an error if programs cannot be
    /// compiled, or if no launch ends in time; threads that hang are then abandoned.
    pub fn run(&self, registry: &PlatformRegistry, platform: &str, watch: &dyn Fn(&Summary)) -> Result<Summary> {
        steps::register(registry);
        let options = ClientOptions { devices: Some(self.devices), ..ClientOptions::default() };
        let client = Client::with_options(registry, platform, options)?;
        let programs = Arc::new(Programs::new(&client, kinds_for(&*registry.get(platform)?.compiler()), self)?);
        let numbers = Arc::new(Mutex::new(0..self.launches + self.failures));
        let (sender, receiver) = channel::<Ended>();
        for thread in 0..self.threads.max(1) as u64 {
            let worker = Worker::new(self, thread, programs.clone(), sender.clone());
            let numbers = numbers.clone();
            let next = move || numbers.lock().unwrap_or_else(PoisonError::into_inner).next();
            thread::Builder::new()
                .name(format!("launches-{thread}"))
                .spawn(move || worker.run(next))
                .map_err(|error| Error::resource_exhausted(format!("a thread cannot be started: {error}")))?;
        }
        drop(sender);
        let mut summary = Summary::default();
        loop {
            match receiver.recv_timeout(self.patience) {
                Ok(ended) => {
                    summary.add(ended, self.prompt);
                    watch(&summary);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return Err(self.hang(&summary)),
            }
        }
        if summary.launches != self.launches + self.failures {
            let wanted = self.launches + self.failures;
            summary.problems.push(format!("a thread died: {} of {wanted} launches ended", summary.launches));
        }
        Ok(summary)
    }

    fn hang(&self, summary: &Summary) -> Error {
        Error::internal(format!(
            "no launch has ended for {:?}; {} of {} launches have ended before",
            self.patience,
            summary.launches,
            self.launches + self.failures
        ))
    }
}

impl Summary {
    fn add(&mut self, ended: Ended, prompt: Duration) {
        let Ended { runs, failed_for, problem, description } = ended;
        self.launches += 1;
        self.runs += runs;
        if let Some(time) = failed_for {
            self.failures += 1;
            self.slowest = self.slowest.max(time);
            if time > prompt {
                self.problems.push(format!("{description} ended {time:?} after the failure, more than {prompt:?}"));
            }
        }
        self.problems.extend(problem.map(|problem| format!("{description}: {problem}")));
    }
}
