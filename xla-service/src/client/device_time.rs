//! Run times measured by the device's own clock, with rotating arguments.

use std::time::Duration;

use xla_hlo::{Error, Result, ResultExt};

use super::buffer::Buffer;
use super::device::{Device, protect};
use super::loaded::LoadedExecutable;
use super::options::ExecuteOptions;
use crate::executable::{Argument, ExecutionContext};
use crate::executor::{DeviceMemory, Stream, Timing};
use crate::signature::Donation;

/// Run times measured by the device's own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Time of each round; a round runs the program once on each argument list.
    pub rounds: Vec<Duration>,
    /// Whether a round was sent to the device as one recording. The error is a readable reason why its runs were sent
    /// one by one.
    pub recorded: std::result::Result<(), String>,
}

impl LoadedExecutable {
    /// Measures run times with the clock of the program's first device. Each round runs the program once on each of the
    /// argument lists; the result has one time per round.
    ///
    /// If the device supports it, a round is sent as one recording, so that its time excludes the host. Otherwise runs
    /// are sent one by one; if a run needs the host in between, the time includes the device's idle time. No argument
    /// is donated: arguments whose donation is required are replaced by copies. In recorded rounds these copies keep
    /// the contents that the previous round left in them.
    ///
    /// Errors: [`Error::Unimplemented`] if the platform cannot measure device times or the program is a multi-device
    /// program; those of [`LoadedExecutable::launch`]; those of the program.
    pub fn device_time(&self, arguments: &[Vec<&Buffer>], rounds: usize) -> Result<DeviceTimes> {
        let device = self.devices().next().ok_or_else(|| Error::internal("the program has no device"))?;
        let timing = device.timing()?;
        if self.is_for_several_devices() {
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

/// Measurement of one program.
struct Timed<'a> {
    program: &'a LoadedExecutable,
    arguments: &'a [Vec<&'a Buffer>],
    timing: &'a dyn Timing,
    context: ExecutionContext<'a>,
}

impl Timed<'_> {
    fn rounds(&self, rounds: usize) -> Result<DeviceTimes> {
        // Warm-up run: loading, layout changes and autotuning happen before the measurement.
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

    /// Returns the times of rounds that are sent as one recording each.
    fn recorded(&self, rounds: usize) -> Result<Vec<Duration>> {
        let stream = self.context.stream;
        let recording = self.timing.record(stream)?;
        let recording = recording.ok_or_else(|| Error::unimplemented("the device cannot record work"))?;
        let runs = self.prepared()?.into_iter().map(|arguments| self.run(&*recording, arguments));
        // Each run has its own results; their memory is in use until the last round is done.
        let results = runs.collect::<Result<Vec<_>>>()?;
        let times = self.timing.time_recorded(recording, stream, rounds);
        drop(results);
        times
    }

    /// Returns the time of a round whose runs are sent one by one.
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

    /// Returns the arguments of each run of a round.
    fn prepared(&self) -> Result<Vec<Vec<Argument>>> {
        self.arguments.iter().map(|list| self.taken(list)).collect()
    }

    /// Returns shares of the arguments, and copies of those that must be donated.
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
