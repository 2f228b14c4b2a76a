//! Time of runs by the device's own clock, on arguments that alternate.

use std::time::Duration;

use xla_hlo::{Error, Result, ResultExt};

use super::buffer::Buffer;
use super::device::{Device, protect};
use super::loaded::LoadedExecutable;
use super::options::ExecuteOptions;
use crate::executable::{Argument, ExecutionContext};
use crate::executor::{DeviceMemory, Stream, Timing};
use crate::signature::Donation;

/// Times of runs by the device's own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Time of each round, in which the program ran once on each of the lists of arguments.
    pub rounds: Vec<Duration>,
    /// Whether the device was given a round as a whole; the error says, for people, why its runs were sent one by one.
    pub recorded: std::result::Result<(), String>,
}

impl LoadedExecutable {
    /// Runs the program on the first of its devices, in each round once on each of the lists of arguments, and tells
    /// how long rounds took by the device's own clock.
    ///
    /// A device that can is given a round as a whole, as a recording, so that the host has no part in its time; else
    /// runs are sent one by one, and where one needs the host in between, the device's waiting counts. Nothing is
    /// donated: for arguments that a program must be given for good there are copies, which in recorded rounds hold
    /// what the round before left there.
    ///
    /// Errors: [`Error::Unimplemented`] where the platform cannot tell times of its devices, and for programs of
    /// several devices that work together; those of [`LoadedExecutable::launch`]; those of the program.
    pub fn device_time(&self, arguments: &[Vec<&Buffer>], rounds: usize) -> Result<DeviceTimes> {
        let device = self.devices().next().ok_or_else(|| Error::internal("a program without a device"))?;
        let timing = device.timing()?;
        if self.as_together().is_some() {
            return Err(self.client().cannot("time programs of several devices"));
        }
        let donate = self.signature().required_donations().collect();
        let options = ExecuteOptions { donate, ..ExecuteOptions::default() };
        arguments.iter().try_for_each(|list| self.check_arguments(device.index(), list, &options))?;
        let calls = self.custom_calls(None);
        let timed = Timed { program: self, arguments, timing, context: device.context(calls.as_ref()) };
        protect(|| timed.rounds(rounds)).context(|| place(&device))
    }
}

fn place(device: &Device) -> String {
    format!("platform {}", device.client().platform())
}

/// A program that is timed.
struct Timed<'a> {
    program: &'a LoadedExecutable,
    arguments: &'a [Vec<&'a Buffer>],
    timing: &'a dyn Timing,
    context: ExecutionContext<'a>,
}

impl Timed<'_> {
    fn rounds(&self, rounds: usize) -> Result<DeviceTimes> {
        // What is loaded, laid out or measured at first is there when time counts.
        if let Some(first) = self.arguments.first() {
            self.run(self.context.stream, self.taken(first)?)?;
            self.context.stream.synchronize()?;
        }
        let reason = match self.program.executable().can_be_recorded(&self.context) {
            Ok(()) => match self.recorded(rounds) {
                Ok(rounds) => return Ok(DeviceTimes { rounds, recorded: Ok(()) }),
                Err(Error::Unimplemented(message)) => message.to_string(),
                Err(error) => return Err(error),
            },
            Err(reason) => reason,
        };
        let rounds = (0..rounds).map(|_| self.queued()).collect::<Result<_>>()?;
        Ok(DeviceTimes { rounds, recorded: Err(reason) })
    }

    /// Times of rounds that the device is given as a whole.
    fn recorded(&self, rounds: usize) -> Result<Vec<Duration>> {
        let stream = self.context.stream;
        let recording = self.timing.record(stream)?;
        let recording = recording.ok_or_else(|| Error::unimplemented("the device records no work"))?;
        let runs = self.prepared()?.into_iter().map(|arguments| self.run(&*recording, arguments));
        // Each run has results of its own, whose memory is in use until the last round is done.
        let results = runs.collect::<Result<Vec<_>>>()?;
        let times = self.timing.time_recorded(recording, stream, rounds);
        drop(results);
        times
    }

    /// Time of a round whose runs are sent one by one.
    fn queued(&self) -> Result<Duration> {
        let mut prepared = self.prepared()?;
        self.timing.time(self.context.stream, &mut || {
            let mut runs = std::mem::take(&mut prepared).into_iter();
            runs.try_for_each(|arguments| self.run(self.context.stream, arguments).map(drop))
        })
    }

    fn run(&self, stream: &dyn Stream, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        let context = ExecutionContext { stream, ..self.context };
        let executable = self.program.executable();
        context.custom_calls.begin_run(executable.module())?;
        executable.execute(&context, arguments)
    }

    /// Arguments of each run of a round.
    fn prepared(&self) -> Result<Vec<Vec<Argument>>> {
        self.arguments.iter().map(|list| self.taken(list)).collect()
    }

    /// Shares of arguments, and copies of those that must be donated.
    fn taken(&self, list: &[&Buffer]) -> Result<Vec<Argument>> {
        let leaves = self.program.signature().arguments().iter().zip(list);
        let taken = leaves.map(|(leaf, buffer)| {
            let argument = buffer.value()?.read()?;
            if leaf.donation != Donation::Required {
                return Ok(argument);
            }
            let memory = argument.memory();
            let mut copy = self.context.executor.allocate(memory.byte_size())?;
            self.context.stream.copy(memory, 0..memory.byte_size(), &mut copy, 0)?;
            Ok(Argument::Donated(copy))
        });
        taken.collect()
    }
}
