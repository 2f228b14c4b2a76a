//! Thread that launches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use xla::{ExecuteOptions, LoadedExecutable};
use xla_hlo::{Literal, Result};
use xla_service::{DeviceResults, Dispatch};

use super::plan::Campaign;
use super::programs::{Generated, Programs};
use super::steps::{self, Fault};
use crate::generate::Random;
use crate::grid_programs::difference;
use crate::multi_device::{start, values};

/// Maximum number of launches of a thread that have not ended.
const PENDING: usize = 4;

/// Launch that has ended.
pub(super) struct Ended {
    /// Program and devices.
    pub description: String,
    /// Number of devices.
    pub runs: u64,
    /// Time from the failure to the end, if a device failed as intended.
    pub failed_for: Option<Duration>,
    pub problem: Option<String>,
}

/// Launch that may not have ended.
struct Pending<'p> {
    program: &'p Generated,
    loaded: LoadedExecutable,
    results: Vec<DeviceResults>,
}

/// State of a thread.
pub(super) struct Worker {
    campaign: Campaign,
    random: Random,
    programs: Arc<Programs>,
    sender: Sender<Ended>,
}

impl Worker {
    pub fn new(campaign: &Campaign, thread: u64, programs: Arc<Programs>, sender: Sender<Ended>) -> Worker {
        let random = Random::new(campaign.seed ^ (thread + 1) << 48);
        Worker { campaign: campaign.clone(), random, programs, sender }
    }

    /// Launches until there is no other number. A launch may start before earlier ones of the thread have ended.
    pub fn run(mut self, next: impl Fn() -> Option<u64>) {
        let programs = self.programs.clone();
        let mut pending: VecDeque<(String, Result<Pending<'_>>)> = VecDeque::new();
        while let Some(number) = next() {
            let is_failing = self.campaign.is_failing(number);
            let is_of_steps = is_failing || self.random.percent(25);
            match programs.steps(&mut self.random).filter(|_| is_of_steps) {
                Some(program) => self.step(program, is_failing),
                None => {
                    let program = programs.generated(&mut self.random);
                    pending.push_back(self.start(program));
                }
            }
            while pending.len() > self.random.below(PENDING) {
                self.finish(pending.pop_front());
            }
        }
        pending.into_iter().for_each(|launch| self.finish(Some(launch)));
    }

    /// Launches a generated program on random devices, in random order.
    fn start<'p>(&mut self, program: &'p Generated) -> (String, Result<Pending<'p>>) {
        let devices = self.devices(program.arguments.len());
        let description = format!("{} on devices {devices:?}", program.name);
        let arguments = program.arguments.first().map_or(0, Vec::len);
        let donated = if self.random.percent(50) { arguments } else { 0 };
        let options = ExecuteOptions {
            donate: (0..donated).collect(),
            dispatch: self.random.pick(&[Dispatch::Queued, Dispatch::Inline, Dispatch::WhenReady]),
            ..ExecuteOptions::default()
        };
        let launch = program.program.on_devices(&devices).and_then(|loaded| {
            let results = start(&loaded, &program.arguments, &options)?;
            Ok(Pending { program, loaded, results })
        });
        (description, launch)
    }

    /// Launches the program of steps and waits for it.
    fn step(&mut self, program: &LoadedExecutable, is_failing: bool) {
        let devices = self.devices(program.device_ids().len());
        let partition = self.random.below(devices.len());
        let fault = is_failing.then(|| (partition, Fault::random(&mut self.random)));
        let dispatch = self.random.pick(&[Dispatch::Queued, Dispatch::Inline]);
        let launch = program.on_devices(&devices).and_then(|loaded| steps::Launch::start(&loaded, fault, dispatch));
        let (problem, failed_for) = match launch {
            Ok(launch) => launch.finish(),
            Err(error) => (Some(format!("the launch was refused: {error}")), None),
        };
        let description = match fault {
            Some((partition, fault)) => format!("steps on devices {devices:?} with {fault:?} of partition {partition}"),
            None => format!("steps on devices {devices:?}"),
        };
        self.report(Ended { description, runs: devices.len() as u64, failed_for, problem });
    }

    fn finish(&self, launch: Option<(String, Result<Pending<'_>>)>) {
        let Some((description, launch)) = launch else { return };
        let (runs, problem) = match launch {
            Ok(launch) => (launch.results.len(), launch.problem()),
            Err(error) => (0, Some(error.to_string())),
        };
        self.report(Ended { description, runs: runs as u64, failed_for: None, problem });
    }

    fn report(&self, ended: Ended) {
        // Nothing receives it after the campaign was given up.
        let _ = self.sender.send(ended);
    }

    /// Returns different devices in random order.
    fn devices(&mut self, count: usize) -> Vec<usize> {
        let mut devices = self.random.permutation(self.campaign.devices);
        devices.truncate(count);
        devices
    }
}

impl Pending<'_> {
    /// Waits for the end and compares the results.
    fn problem(&self) -> Option<String> {
        let signed_zero = self.loaded.join_reason().is_none();
        let compare = |found: Vec<Literal>| difference(&self.program.expected, &found, signed_zero);
        values(&self.loaded, &self.results).map_or_else(|error| Some(error.to_string()), compare)
    }
}
