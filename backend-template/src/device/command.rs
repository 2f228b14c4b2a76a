//! Commands (uploads, copies, launches, loops) and the tasks of a queue's thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use xla_hlo::{Error, Result};

use super::event::{Completer, Event};
use super::kernel::Kernel;
use super::memory::Region;
use super::tensor::Access;

/// Operation on device memory, with a label for error messages.
#[derive(Clone, Debug)]
pub struct Command {
    pub(super) label: Arc<str>,
    pub(super) kind: CommandKind,
}

/// Kind of a [`Command`].
#[derive(Clone, Debug)]
pub(super) enum CommandKind {
    Upload { bytes: Arc<[u8]>, to: Region },
    Copy { from: Region, to: Region },
    Launch { kernel: Arc<Kernel>, bindings: Vec<Region> },
    While { condition: Vec<Command>, predicate: Predicate, body: Vec<Command> },
}

/// Predicate of a loop, read before each iteration.
#[derive(Clone, Debug)]
pub struct Predicate {
    /// Location of the predicate: one byte, 1 to continue.
    pub place: Region,
    /// Cancellation flag. The host sets it to end the loop with [`Error::Cancelled`].
    pub cancelled: Arc<AtomicBool>,
}

/// Task of a queue's thread.
#[derive(Debug)]
pub(super) enum Task {
    Command(Command),
    Download {
        from: Region,
        reply: Sender<Result<Vec<u8>>>,
    },
    Record(Completer),
    Wait(Event),
    /// Replies when all earlier tasks are done.
    Pause(Sender<()>),
}

impl Command {
    /// Creates a command that writes `bytes`, which are copied now.
    pub fn upload(label: &Arc<str>, bytes: &[u8], to: Region) -> Result<Command> {
        same_size(bytes.len(), to.size())?;
        Ok(Command { label: label.clone(), kind: CommandKind::Upload { bytes: bytes.into(), to } })
    }

    /// Creates a copy on the device; the regions may overlap.
    pub fn copy(label: &Arc<str>, from: Region, to: Region) -> Result<Command> {
        same_size(from.size(), to.size())?;
        Ok(Command { label: label.clone(), kind: CommandKind::Copy { from, to } })
    }

    /// Creates a launch of a kernel, with one region for each of its tensors.
    pub fn launch(label: &Arc<str>, kernel: &Arc<Kernel>, bindings: Vec<Region>) -> Result<Command> {
        kernel.check_bindings(&bindings)?;
        Ok(Command { label: label.clone(), kind: CommandKind::Launch { kernel: kernel.clone(), bindings } })
    }

    /// Creates a loop: runs `condition`; while the predicate is 1, runs `body` and `condition` again.
    pub fn repeat(
        label: &Arc<str>,
        condition: Vec<Command>,
        predicate: Predicate,
        body: Vec<Command>,
    ) -> Result<Command> {
        same_size(predicate.place.size(), 1)?;
        Ok(Command { label: label.clone(), kind: CommandKind::While { condition, predicate, body } })
    }

    /// Returns the regions that the command reads.
    pub(super) fn reads(&self) -> Vec<&Region> {
        match &self.kind {
            CommandKind::Upload { .. } => Vec::new(),
            CommandKind::Copy { from, .. } => vec![from],
            CommandKind::Launch { kernel, bindings } => bound(bindings, kernel, |access| access != Access::Write),
            CommandKind::While { condition, body, .. } => {
                condition.iter().chain(body).flat_map(Command::reads).collect()
            }
        }
    }

    /// Returns the regions that the command writes. It overwrites each of them entirely, except tensors with
    /// [`Access::Update`].
    pub(super) fn writes(&self) -> Vec<&Region> {
        match &self.kind {
            CommandKind::Upload { to, .. } | CommandKind::Copy { to, .. } => vec![to],
            CommandKind::Launch { kernel, bindings } => bound(bindings, kernel, |access| access != Access::Read),
            CommandKind::While { condition, body, .. } => {
                condition.iter().chain(body).flat_map(Command::writes).collect()
            }
        }
    }
}

fn same_size(from: usize, to: usize) -> Result<()> {
    if from == to { Ok(()) } else { Err(Error::internal(format!("{from} bytes do not fit into {to}"))) }
}

fn bound<'a>(bindings: &'a [Region], kernel: &Kernel, wanted: impl Fn(Access) -> bool) -> Vec<&'a Region> {
    let tensors = bindings.iter().zip(&kernel.program().tensors);
    tensors.filter(|(_, tensor)| wanted(tensor.access)).map(|(region, _)| region).collect()
}
