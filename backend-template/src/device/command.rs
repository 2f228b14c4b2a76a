//! Commands: uploads, copies, launches and loops, and the tasks that carry them to a queue's thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use xla_hlo::{Error, Result};

use super::event::{Completer, Event};
use super::kernel::Kernel;
use super::memory::Region;
use super::tensor::Access;

/// Work on device memory, with a label for errors.
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
    /// One byte: 1 to go on.
    pub place: Region,
    /// Set from the host to end the loop with [`Error::Cancelled`].
    pub cancelled: Arc<AtomicBool>,
}

/// A task of a queue's thread.
#[derive(Debug)]
pub(super) enum Task {
    Command(Command),
    Download {
        from: Region,
        reply: Sender<Result<Vec<u8>>>,
    },
    Record(Completer),
    Wait(Event),
    /// Answers when everything before it is done.
    Pause(Sender<()>),
}

impl Command {
    /// Writes bytes, which were copied from the host's.
    pub fn upload(label: &Arc<str>, bytes: &[u8], to: Region) -> Result<Command> {
        same_size(bytes.len(), to.size())?;
        Ok(Command { label: label.clone(), kind: CommandKind::Upload { bytes: bytes.into(), to } })
    }

    /// Copies on the device; the regions may overlap.
    pub fn copy(label: &Arc<str>, from: Region, to: Region) -> Result<Command> {
        same_size(from.size(), to.size())?;
        Ok(Command { label: label.clone(), kind: CommandKind::Copy { from, to } })
    }

    /// Runs a kernel with a region for each of its tensors.
    pub fn launch(label: &Arc<str>, kernel: &Arc<Kernel>, bindings: Vec<Region>) -> Result<Command> {
        kernel.check_bindings(&bindings)?;
        Ok(Command { label: label.clone(), kind: CommandKind::Launch { kernel: kernel.clone(), bindings } })
    }

    /// Runs `condition`, then, while the predicate is 1, `body` and `condition` again.
    pub fn repeat(
        label: &Arc<str>,
        condition: Vec<Command>,
        predicate: Predicate,
        body: Vec<Command>,
    ) -> Result<Command> {
        same_size(predicate.place.size(), 1)?;
        Ok(Command { label: label.clone(), kind: CommandKind::While { condition, predicate, body } })
    }

    /// Regions that it reads.
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

    /// Regions that it writes: all of them, but for tensors that are updated.
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
