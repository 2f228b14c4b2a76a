//! Lock-step evaluation: devices run in the order of their ids, each until its next collective.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope, ScopedJoinHandle};

use super::super::{Evaluator, STACK_BYTES};
use super::devices::Grid;
use super::link::{Arrival, Link, Report};
use crate::ops::Op;
use crate::ops::collective::{Collective, Meeting};
use crate::out_of_memory::ensure_thread_room;
use crate::{Error, Literal, Module, Result, ResultExt};

/// All devices of a grid. Between calls of its methods, none of them runs.
pub(super) struct Lockstep<'s, 'm> {
    grid: Grid,
    module: &'m Module,
    /// Devices that have started, by id.
    devices: Vec<Started<'s, 'm>>,
}

/// A device that has started.
struct Started<'s, 'm> {
    reports: Receiver<Report<'m>>,
    results: Sender<Vec<Literal>>,
    /// `None` once the thread has panicked.
    thread: Option<ScopedJoinHandle<'s, ()>>,
    state: State<'m>,
}

enum State<'m> {
    Running,
    Waiting(Arrival<'m>, Meeting),
    Finished(Literal),
}

impl<'s, 'm> Lockstep<'s, 'm> {
    pub fn new(grid: Grid, module: &'m Module) -> Lockstep<'s, 'm> {
        Lockstep { grid, module, devices: Vec::new() }
    }

    /// Starts the next device, and runs it until its first collective.
    pub fn start(&mut self, scope: &'s Scope<'s, '_>, evaluator: Evaluator<'m>, arguments: Vec<Literal>) -> Result<()>
    where
        'm: 's,
    {
        let id = self.devices.len();
        let (reports, reported) = mpsc::channel();
        let (results, received) = mpsc::channel();
        let (replica, partition) = (id / self.grid.partitions, id % self.grid.partitions);
        let link = Arc::new(Link { reports: reports.clone(), results: Mutex::new(received) });
        let run = move || {
            let result = evaluator.on_device(replica, partition, link).call_entry(arguments);
            // Nothing receives the report if another device has failed.
            let _ = reports.send(Report::Finished(result));
        };
        ensure_thread_room()?;
        let builder = thread::Builder::new().name(format!("device {id}")).stack_size(STACK_BYTES);
        let thread = builder
            .spawn_scoped(scope, run)
            .map_err(|error| Error::resource_exhausted(format!("cannot start a thread for device {id}: {error}")))?;
        self.devices.push(Started { reports: reported, results, thread: Some(thread), state: State::Running });
        self.advance(id)
    }

    /// Runs all devices to their ends. Returns their results. `combining` runs the reducers of collectives.
    pub fn finish(mut self, combining: &mut Evaluator<'m>) -> Result<Vec<Literal>> {
        while self.devices.iter().any(|device| matches!(device.state, State::Waiting(..))) {
            let results = self.exchange_all(combining)?;
            if results.is_empty() {
                return Err(self.deadlock());
            }
            for (id, results) in results {
                // A device that panicked has closed the channels; `advance` continues the panic.
                let _ = self.devices[id].results.send(results);
                self.advance(id)?;
            }
        }
        let finished = self.devices.into_iter().filter_map(|device| match device.state {
            State::Finished(result) => Some(result),
            State::Waiting(..) | State::Running => None,
        });
        Ok(finished.collect())
    }

    /// Lets a device run until it waits or has finished.
    fn advance(&mut self, id: usize) -> Result<()> {
        let device = &mut self.devices[id];
        let state = match device.reports.recv() {
            Ok(Report::Arrived(arrival)) => {
                let meeting = self.meeting(&arrival, id);
                let meeting = meeting.context(|| format!("evaluating {}", arrival.describe()))?;
                State::Waiting(arrival, meeting)
            }
            Ok(Report::Finished(result)) => State::Finished(result.context(|| self.grid.describe(id))?),
            Err(_) => match device.thread.take().map(ScopedJoinHandle::join) {
                Some(Err(panic)) => resume_unwind(panic),
                _ => return Err(Error::internal(format!("{} has ended without a report", self.grid.describe(id)))),
            },
        };
        self.devices[id].state = state;
        Ok(())
    }

    /// Executes every collective whose devices all wait at it. Returns the results by device, in ascending order.
    fn exchange_all(&self, combining: &mut Evaluator<'m>) -> Result<Vec<(usize, Vec<Literal>)>> {
        let mut all = Vec::new();
        for id in 0..self.devices.len() {
            let Some((arrival, meeting)) = self.waiting(id) else { continue };
            // Each meeting is held once, by its device of the lowest id.
            if meeting.members.iter().min() != Some(&id) {
                continue;
            }
            if let Some(present) = self.present(arrival, meeting) {
                let rows: Vec<Vec<Literal>> = present.iter().map(|other| other.operands.clone()).collect();
                let results = collective(arrival).and_then(|op| op.exchange(combining, meeting, &rows));
                let results = results.context(|| format!("evaluating {}", arrival.describe()))?;
                all.extend(meeting.members.iter().copied().zip(results));
            }
        }
        all.sort_by_key(|(id, _)| *id);
        Ok(all)
    }

    fn waiting(&self, id: usize) -> Option<(&Arrival<'m>, &Meeting)> {
        match &self.devices[id].state {
            State::Waiting(arrival, meeting) => Some((arrival, meeting)),
            State::Finished(_) | State::Running => None,
        }
    }

    /// Returns the arrival of device `id` if it waits at the same collective as `arrival`.
    fn with(&self, id: usize, arrival: &Arrival<'m>) -> Option<&Arrival<'m>> {
        self.waiting(id).map(|(other, _)| other).filter(|other| other.is_with(arrival))
    }

    /// Returns the arrivals of all members, or `None` if one of them is not at the collective.
    fn present(&self, arrival: &Arrival<'m>, meeting: &Meeting) -> Option<Vec<&Arrival<'m>>> {
        meeting.members.iter().map(|&id| self.with(id, arrival)).collect()
    }

    /// Returns the devices that execute a collective together with device `id`, which waits at it.
    fn meeting(&self, arrival: &Arrival<'m>, id: usize) -> Result<Meeting> {
        collective(arrival)?.meeting(self.module.attributes(), id)
    }

    /// Describes where the devices wait, and for which others.
    fn deadlock(&self) -> Error {
        let mut message = "no device can advance".to_string();
        for id in 0..self.devices.len() {
            let state = match self.waiting(id) {
                None => "has finished".to_string(),
                Some((arrival, meeting)) => {
                    let missing = meeting.members.iter().filter(|&&other| self.with(other, arrival).is_none());
                    let missing: Vec<String> = missing.map(usize::to_string).collect();
                    format!("waits at {} for device {}", arrival.describe(), missing.join(", "))
                }
            };
            message += &format!("\n{} {state}", self.grid.describe(id));
        }
        Error::invalid_argument(message)
    }
}

fn collective<'m>(arrival: &Arrival<'m>) -> Result<&'m Collective> {
    match arrival.computation[arrival.instruction].op() {
        Op::Collective(op) => Ok(op),
        _ => Err(Error::internal("the instruction is not a collective")),
    }
}
