//! Programs that each of several devices runs on its own values, with collectives among them.
//!
//! ```text
//! launch ── arguments of all devices ── queue ── device 0: worker thread ─┐ LogicalDevice: replica, partition,
//!           are available                        device 1: worker thread ─┤ key of the run
//!                                                device 2: worker thread ─┘ collectives
//! ```
//!
//! The runs of one launch start once the arguments of all its devices are available, so they wait only for each other.
//! They are queued next to each other, and worker threads take jobs in the order of the queue: all runs of a launch
//! start before the first run of the next one. Therefore launches over overlapping sets of devices cannot wait for each
//! other in a cycle. Runs with side effects also wait for earlier runs on their devices; a launch records them on all
//! of its devices while it holds the client's launch ticket, so that this order is the same on all devices.

use std::sync::{Arc, OnceLock, PoisonError};

use sha2::{Digest, Sha256};
use xla_hlo::eval::grid::Grid;
use xla_hlo::text::{PrintOptions, print_module};
use xla_hlo::{Error, LeafSharding, Result, VerifiedModule};
use xla_passes::Localized;

use super::assignment::Assignment;
use super::device::{Client, ClientState};
use super::inputs::Inputs;
use super::job::{RunOptions, when_all_sent};
use super::launch::DeviceResults;
use super::loaded::{Arrangement, LoadedExecutable, PerDevice};
use super::member::Member;
use super::options::{Dispatch, ExecuteOptions};
use super::value::Work;
use crate::cancel::CancelToken;
use crate::collective::{CollectiveRun, RunKey};
use crate::logical_device::LogicalDevice;
use crate::options::CompileOptions;
use crate::workers::is_host_call;

impl Client {
    /// Compiles a program once for all of its devices. `local` is the program of each device if the module is on global
    /// values.
    pub(super) fn compile_per_device(
        &self,
        module: &VerifiedModule,
        local: Option<Localized>,
        options: &CompileOptions,
    ) -> Result<LoadedExecutable> {
        let grid = Grid::of(module)?;
        self.check_device_count(module, grid.device_count())?;
        let program = self.compile_for_one(local.as_ref().map_or(module, |local| &local.module), options)?;
        let signature = program.signature();
        let counts = [signature.arguments().len(), signature.results().len()];
        let shardings = match local {
            Some(Localized { arguments, results, .. }) => [arguments, results],
            None => counts.map(|count| vec![LeafSharding::default(); count]),
        };
        let own =
            PerDevice { source: module.clone(), grid, plans: Arc::default(), shardings, identity: OnceLock::new() };
        let assignment = Assignment::default(self, grid.device_count())?;
        Ok(program.as_loaded(assignment, Arrangement::PerDevice(Arc::new(own))))
    }

    /// Returns an error if the client has fewer devices than a module needs.
    pub(super) fn check_device_count(&self, module: &VerifiedModule, devices: usize) -> Result<()> {
        let (name, here) = (module.name(), self.0.topology.devices().len());
        if devices <= here {
            return Ok(());
        }
        let message = format!("{name} is a program for {devices} devices, but the client has {here}");
        Err(Error::invalid_argument(message))
    }
}

impl PerDevice {
    /// Launches the program on its devices; `inputs` are taken from the arguments of each.
    pub fn launch(
        &self,
        program: &LoadedExecutable,
        inputs: Vec<Inputs>,
        options: &ExecuteOptions,
    ) -> Vec<DeviceResults> {
        let client = &program.client().0;
        let run = Arc::new(self.begin(client, program.assignment()));
        let cancel = options.cancel.as_ref().map_or_else(CancelToken::new, CancelToken::child);
        let (mut jobs, mut all) = (Vec::new(), Vec::new());
        for ((&id, device), inputs) in program.logical_ids().iter().zip(program.devices()).zip(inputs) {
            let device_of_run = LogicalDevice::new(self.grid, id, run.clone(), self.plans.clone());
            let (replica, partition) = (device_of_run.replica(), device_of_run.partition());
            let place = format!(
                "platform {}, device {} (replica {replica}, partition {partition})",
                client.platform,
                device.id()
            );
            let member = Member::new(place, device_of_run, cancel.clone());
            let own =
                RunOptions { cancel: Some(cancel.clone()), context: options.context.clone(), member: Some(member) };
            let (job, results) = program.job(device, inputs, own);
            jobs.push(job);
            all.push(results);
        }
        let in_host_call = is_host_call();
        let before: Vec<Work> = if in_host_call {
            // The run that made the host call may be the last one with side effects, and ends only after this launch.
            jobs.iter().flat_map(|job| job.inputs.works()).filter(|work| !work.is_sent()).cloned().collect()
        } else {
            // Runs with side effects have one order on all devices.
            let _ticket = client.ticket.lock().unwrap_or_else(PoisonError::into_inner);
            jobs.iter().zip(&all).flat_map(|(job, results)| job.before(results.work())).collect()
        };
        let is_awaited = in_host_call
            || match options.dispatch {
                Dispatch::Inline => true,
                // A failed argument makes the results fail, not the call.
                Dispatch::WhenReady => before.is_empty() && jobs.iter().all(|job| job.inputs.are_available()),
                Dispatch::Queued | Dispatch::Auto => false,
            };
        let workers = client.workers.clone();
        let jobs = jobs.into_iter().map(|job| Box::new(move || job.run()) as Box<dyn FnOnce() + Send>);
        when_all_sent(before, move || workers.spawn_all(jobs));
        // A program inside of a host call is complete when the call returns.
        if is_awaited {
            all.iter_mut().for_each(DeviceResults::await_inline);
        }
        all
    }

    /// Begins a run. Processes whose devices take part derive the same key.
    fn begin(&self, client: &ClientState, assignment: &Assignment) -> CollectiveRun {
        match &client.across {
            Some(engine) if assignment.has_remote() => {
                let identity = self.identity.get_or_init(|| self.identity());
                let key = client.launches.next(identity, &assignment.ids);
                CollectiveRun::new(engine.clone(), key).on_devices(assignment.ids.clone())
            }
            _ => CollectiveRun::new(client.collectives.clone(), RunKey::next()),
        }
    }

    /// Ends the run of a launch that this process rejects: the other processes fail with its error, and the processes
    /// agree on the keys of later launches.
    pub fn reject(&self, program: &LoadedExecutable, error: &Error) {
        if program.assignment().has_remote() {
            self.begin(&program.client().0, program.assignment()).abort(error.again());
        }
    }

    /// Returns an identity of the program that is equal in all processes: paths in its metadata may differ.
    fn identity(&self) -> [u8; 32] {
        let options = PrintOptions { metadata: false, ..PrintOptions::default() };
        Sha256::digest(print_module(&self.source, &options)).into()
    }

    /// Returns an error unless the program is for this number of devices.
    pub fn check_devices(&self, devices: &[usize]) -> Result<()> {
        let (wanted, given) = (self.grid.device_count(), devices.len());
        if wanted == given {
            return Ok(());
        }
        let name = self.source.name();
        Err(Error::invalid_argument(format!("{name} is a program for {wanted} devices, but {given} were given")))
    }
}
