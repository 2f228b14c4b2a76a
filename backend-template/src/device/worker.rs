//! Thread of a queue: executes commands in order and propagates errors with the data.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use xla_hlo::{Error, Result};

use super::command::{Command, CommandKind, Predicate, Task};
use super::core;
use super::fault::{FaultKind, Faults};
use super::locked::Locked;
use super::memory::{Region, SharedError};

/// Executor of the tasks of one queue.
pub(super) struct Worker {
    faults: Arc<Faults>,
    /// First error since the last event.
    failure: Option<SharedError>,
}

impl Worker {
    pub fn new(faults: Arc<Faults>) -> Worker {
        Worker { faults, failure: None }
    }

    /// Executes tasks until the queue is closed. Drops each task before it starts the next one.
    pub fn run(mut self, tasks: Receiver<Task>) {
        for task in tasks {
            match task {
                Task::Command(command) => self.command(&command),
                Task::Download { from, reply } => {
                    let bytes = self.download(&from);
                    drop(from);
                    // Sending fails if the reader no longer waits.
                    drop(reply.send(bytes));
                }
                Task::Record(completer) => completer.complete(self.failure.take().map_or(Ok(()), Err)),
                Task::Wait(event) => self.failure = self.failure.take().or_else(|| event.settle().err()),
                Task::Pause(reply) => drop(reply.send(())),
            }
        }
    }

    fn command(&mut self, command: &Command) {
        let outcome = match &command.kind {
            CommandKind::While { condition, predicate, body } => {
                self.repeat(&command.label, condition, predicate, body)
            }
            CommandKind::Upload { .. } | CommandKind::Copy { .. } | CommandKind::Launch { .. } => self.step(command),
        };
        if let Err(failure) = outcome {
            for region in command.writes() {
                region.block.lock().poison(region.range.clone(), &failure);
            }
            self.failure.get_or_insert(failure);
        }
    }

    /// Executes one upload, copy or launch.
    fn step(&mut self, command: &Command) -> Result<(), SharedError> {
        let (reads, writes) = (command.reads(), command.writes());
        let mut memory = Locked::new(reads.iter().chain(&writes).copied());
        if let Some(failure) = reads.iter().find_map(|region| memory.poison_in(region)) {
            return Err(failure);
        }
        // Catches panics, so that shared memory stays consistent even if the device code has a bug.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.work(command, &mut memory)));
        let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("the device code panicked")));
        outcome.map_err(|error| SharedError::new(error.context(&command.label)))?;
        writes.iter().for_each(|region| memory.cleanse(region));
        Ok(())
    }

    fn work(&self, command: &Command, memory: &mut Locked<'_>) -> Result<()> {
        match &command.kind {
            CommandKind::Upload { bytes, to } => {
                self.copy_fault(to, "copy to the device")?;
                memory.bytes_mut(to).copy_from_slice(bytes);
            }
            CommandKind::Copy { from, to } => {
                self.copy_fault(to, "copy on the device")?;
                memory.copy(from, to);
            }
            CommandKind::Launch { kernel, bindings } => {
                self.fault(FaultKind::Kernel, &format!("kernel {}", kernel.name()))?;
                core::run(kernel, bindings, memory)?;
            }
            CommandKind::While { .. } => return Err(Error::internal("a loop cannot run as a single step")),
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        label: &Arc<str>,
        condition: &[Command],
        predicate: &Predicate,
        body: &[Command],
    ) -> Result<(), SharedError> {
        loop {
            condition.iter().for_each(|command| self.command(command));
            let place = &predicate.place;
            let goes_on = {
                let memory = place.block.lock();
                if let Some(failure) = memory.poison_in(&place.range) {
                    return Err(failure.clone());
                }
                memory.bytes[place.range.start] != 0
            };
            if !goes_on {
                return Ok(());
            }
            if predicate.cancelled.load(Ordering::Relaxed) {
                return Err(SharedError::new(Error::cancelled("the run was cancelled").context(label)));
            }
            body.iter().for_each(|command| self.command(command));
        }
    }

    fn download(&self, from: &Region) -> Result<Vec<u8>> {
        let memory = from.block.lock();
        if let Some(failure) = memory.poison_in(&from.range) {
            return Err(failure.again());
        }
        self.copy_fault(from, "copy from the device")?;
        Ok(memory.bytes[from.range.clone()].to_vec())
    }

    /// Checks for an injected copy fault; empty copies never fail.
    fn copy_fault(&self, region: &Region, what: &str) -> Result<()> {
        if region.size() == 0 { Ok(()) } else { self.fault(FaultKind::Copy, what) }
    }

    fn fault(&self, kind: FaultKind, what: &str) -> Result<()> {
        if self.faults.strikes(kind) { Err(Error::internal(format!("{what} failed: injected fault"))) } else { Ok(()) }
    }
}
