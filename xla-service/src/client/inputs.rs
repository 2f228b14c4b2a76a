//! Inputs of a launch on one device: shares of its arguments' values, and what else it waits for.

use std::sync::Arc;

use xla_hlo::{ArrayShape, Error, Result};

use super::buffer::Buffer;
use super::device::Device;
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
    /// For an array of dynamic size, which becomes one of the size that the program takes.
    pub resized: Option<Resized>,
}

/// An array of dynamic size for a program that takes one of static shape.
pub(super) struct Resized {
    buffer: Buffer,
    shape: Arc<ArrayShape>,
}

impl Input {
    /// The value of a buffer for a program that takes an array of `shape`.
    pub fn new(buffer: &Buffer, value: Arc<Value>, donated: bool, shape: &Arc<ArrayShape>) -> Input {
        let resized = buffer.is_dynamic().then(|| {
            let buffer = buffer.with_value(buffer.device().clone(), value.clone());
            Resized { buffer, shape: shape.clone() }
        });
        Input { value, donated, resized }
    }

    /// Waits until a program of that device may use it.
    fn read(self, device: &Device) -> Result<Argument> {
        match self.resized {
            Some(resized) => resized.read(device),
            None if self.donated => self.value.take(),
            None => self.value.read(),
        }
    }
}

impl Resized {
    /// A copy, if the array has the size that the program takes.
    fn read(self, device: &Device) -> Result<Argument> {
        let Resized { buffer, shape } = self;
        let literal = buffer.to_literal()?;
        if !literal.shape().compatible(&(*shape).clone().into()) {
            let (is, bound) = (literal.shape(), buffer.shape());
            return Err(Error::invalid_argument(format!(
                "an argument of dynamic size, {bound}, is {is}; the program takes {shape}"
            )));
        }
        let copy = device.buffer_for(&literal, &shape, &|| format!("an argument of {shape}"))?;
        copy.value()?.take()
    }
}

impl Inputs {
    /// The work that they come from.
    pub fn works(&self) -> impl Iterator<Item = &Work> {
        self.arguments.iter().map(|input| input.value.work()).chain(&self.after)
    }

    /// Waits for what comes before, then for the arguments, which the program may use from then on.
    pub fn read(self, device: &Device) -> Result<Vec<Argument>> {
        self.after.iter().try_for_each(Work::wait)?;
        // Every buffer of a device comes from its one stream, in whose order its event has no work left to wait for.
        self.arguments.into_iter().map(|input| input.read(device)).collect()
    }
}

/// Takes a donation back.
pub(super) fn give_back(buffer: &Buffer, input: Input) {
    if input.donated {
        buffer.take_back(input.value);
    }
}
