//! Inputs of a launch on one device: shares of its arguments' values, and what else it waits for.

use std::sync::Arc;

use xla_hlo::Result;

use super::buffer::Buffer;
use super::value::{Value, Work};
use crate::executable::Argument;

/// Inputs of a launch.
pub(super) struct Inputs {
    pub arguments: Vec<Input>,
    /// Work that comes before it, though it reads nothing of it.
    pub after: Vec<Work>,
}

/// One argument of a launch.
pub(super) struct Input {
    pub value: Arc<Value>,
    pub donated: bool,
}

impl Inputs {
    /// The work that they come from.
    pub fn works(&self) -> impl Iterator<Item = &Work> {
        self.arguments.iter().map(|input| input.value.work()).chain(&self.after)
    }

    /// Waits for what comes before, then for the arguments, which the program may use from then on.
    pub fn read(self) -> Result<Vec<Argument>> {
        self.after.iter().try_for_each(Work::wait)?;
        // Every buffer of a device comes from its one stream, in whose order its event has no work left to wait for.
        let read = |input: Input| if input.donated { input.value.take() } else { input.value.read() };
        self.arguments.into_iter().map(read).collect()
    }
}

/// Takes a donation back.
pub(super) fn give_back(buffer: &Buffer, input: Input) {
    if input.donated {
        buffer.take_back(input.value);
    }
}
