//! Lock-step evaluation: devices run in the order of their ids, each until its next collective.

use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Scope};

use super::super::device::{Arrival, Device, Report};
use super::super::{Evaluator, STACK_BYTES};
use super::devices::Grid;
use crate::ops::collective::exchange;
use crate::out_of_memory::ensure_thread_room;
use crate::{Error, Literal, Result, ResultExt};

/// All devices of a grid. Between calls of its methods, none of them runs.
pub(super) struct Lockstep<'m> {
    grid: Grid,
    /// Devices that have started, by id.
    devices: Vec<Started<'m>>,
}

/// A device that has started.
struct Started<'m> {
    reports: Receiver<Report<'m>>,
    results: Sender<Vec<Literal>>,
    state: State<'m>,
}

enum State<'m> {
    Waiting(Arrival<'m>),
    Finished(Literal),
}

/// Devices that execute a collective together, in group order.
struct Meeting {
    members: Vec<usize>,
    /// Whether the collective names the members as a group.
    is_group: bool,
}

impl<'m> Lockstep<'m> {
    pub fn new(grid: Grid) -> Lockstep<'m> {
        Lockstep { grid, devices: Vec::new() }
    }

    /// Starts the next device, and runs it until its first collective.
    pub fn start<'s>(
        &mut self,
        scope: &'s Scope<'s, '_>,
        evaluator: Evaluator<'m>,
        arguments: Vec<Literal>,
    ) -> Result<()>
    where
        'm: 's,
    {
        let id = self.devices.len();
        let (reports, reported) = mpsc::channel();
        let (results, received) = mpsc::channel();
        let device = Device {
            replica: id / self.grid.partitions,
            partition: id % self.grid.partitions,
            reports: reports.clone(),
            results: Mutex::new(received),
        };
        let run = move || {
            let result = evaluator.on_device(device).call_entry(arguments);
            // Nothing receives the report if another device has failed.
            let _ = reports.send(Report::Finished(result));
        };
        ensure_thread_room()?;
        let builder = thread::Builder::new().name(format!("device {id}")).stack_size(STACK_BYTES);
        builder
            .spawn_scoped(scope, run)
            .map_err(|error| Error::resource_exhausted(format!("cannot start a thread for device {id}: {error}")))?;
        let state = self.next_state(id, &reported)?;
        self.devices.push(Started { reports: reported, results, state });
        Ok(())
    }

    /// Runs all devices to their ends. Returns their results. `combining` runs the reducers of collectives.
    pub fn finish(mut self, combining: &mut Evaluator<'m>) -> Result<Vec<Literal>> {
        while self.devices.iter().any(|device| matches!(device.state, State::Waiting(_))) {
            let results = self.exchange_all(combining)?;
            if results.is_empty() {
                return Err(self.deadlock(combining));
            }
            for (id, results) in results {
                // A device that panicked has closed the channels; `next_state` reports it.
                let _ = self.devices[id].results.send(results);
                self.devices[id].state = self.next_state(id, &self.devices[id].reports)?;
            }
        }
        let finished = self.devices.into_iter().filter_map(|device| match device.state {
            State::Finished(result) => Some(result),
            State::Waiting(_) => None,
        });
        Ok(finished.collect())
    }

    /// Lets a device run until it waits or has finished.
    fn next_state(&self, id: usize, reports: &Receiver<Report<'m>>) -> Result<State<'m>> {
        match reports.recv() {
            Ok(Report::Arrived(arrival)) => Ok(State::Waiting(arrival)),
            Ok(Report::Finished(result)) => result.map(State::Finished).context(|| self.grid.describe(id)),
            // The panic continues when the thread is joined.
            Err(_) => Err(Error::internal(format!("the evaluation on {} panicked", self.grid.describe(id)))),
        }
    }

    /// Executes every collective whose devices all wait at it. Returns the results by device, in ascending order.
    fn exchange_all(&self, combining: &mut Evaluator<'m>) -> Result<Vec<(usize, Vec<Literal>)>> {
        let mut all = Vec::new();
        for id in 0..self.devices.len() {
            let Some(arrival) = self.arrival(id) else { continue };
            let meeting = self.meeting(arrival, id, combining)?;
            // Each meeting is held once, by its device of the lowest id.
            if meeting.members.iter().min() != Some(&id) {
                continue;
            }
            if let Some(present) = self.present(arrival, &meeting) {
                let results = exchange_among(arrival, &meeting, &present, combining);
                let results = results.context(|| format!("evaluating {}", arrival.describe()))?;
                all.extend(meeting.members.into_iter().zip(results));
            }
        }
        all.sort_by_key(|(id, _)| *id);
        Ok(all)
    }

    fn arrival(&self, id: usize) -> Option<&Arrival<'m>> {
        match &self.devices[id].state {
            State::Waiting(arrival) => Some(arrival),
            State::Finished(_) => None,
        }
    }

    /// Returns the arrivals of all members, or `None` if one of them is not at the collective.
    fn present(&self, arrival: &Arrival<'m>, meeting: &Meeting) -> Option<Vec<&Arrival<'m>>> {
        let at_it = |&id: &usize| self.arrival(id).filter(|other| other.is_with(arrival));
        meeting.members.iter().map(at_it).collect()
    }

    /// Returns the devices that execute a collective together with device `id`, which waits at it.
    fn meeting(&self, arrival: &Arrival<'m>, id: usize, combining: &Evaluator<'m>) -> Result<Meeting> {
        let meetings = arrival.op()?.meetings(combining.module().attributes());
        let meetings = meetings.context(|| format!("evaluating {}", arrival.describe()))?;
        let own = meetings.into_iter().find(|members| members.contains(&id));
        Ok(Meeting { is_group: own.is_some(), members: own.unwrap_or_else(|| vec![id]) })
    }

    /// Describes where the devices wait, and for which others.
    fn deadlock(&self, combining: &Evaluator<'m>) -> Error {
        let mut message = "no device can advance".to_string();
        for (id, device) in self.devices.iter().enumerate() {
            let state = match &device.state {
                State::Finished(_) => "has finished".to_string(),
                State::Waiting(arrival) => {
                    let members = self.meeting(arrival, id, combining).map(|meeting| meeting.members);
                    let mut missing = members.unwrap_or_default();
                    missing.retain(|&other| !self.arrival(other).is_some_and(|other| other.is_with(arrival)));
                    let missing: Vec<String> = missing.iter().map(usize::to_string).collect();
                    format!("waits at {} for device {}", arrival.describe(), missing.join(", "))
                }
            };
            message += &format!("\n{} {state}", self.grid.describe(id));
        }
        Error::invalid_argument(message)
    }
}

/// Executes a collective. Returns the results of each member.
fn exchange_among(
    arrival: &Arrival<'_>,
    meeting: &Meeting,
    present: &[&Arrival<'_>],
    combining: &mut Evaluator<'_>,
) -> Result<Vec<Vec<Literal>>> {
    let rows: Vec<Vec<Literal>> = present.iter().map(|other| other.operands.clone()).collect();
    for (row, member) in rows.iter().zip(&meeting.members) {
        for (i, (operand, first)) in row.iter().zip(&rows[0]).enumerate() {
            if operand.shape() != first.shape() {
                return Err(Error::invalid_argument(format!(
                    "operand {i} is {} on device {member}, but {} on device {}",
                    operand.shape(),
                    first.shape(),
                    meeting.members[0]
                )));
            }
        }
    }
    exchange(arrival.op()?, combining, &meeting.members, meeting.is_group, &rows)
}
