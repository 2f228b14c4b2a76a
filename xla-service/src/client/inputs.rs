//! Inputs of a launch on one device: shares of argument values, and other work to wait for.

use std::sync::Arc;

use xla_hlo::{ArrayShape, Error, Result};

use super::buffer::Buffer;
use super::device::Device;
use super::value::{Value, Work};
use crate::executable::Argument;

/// Inputs of a launch.
pub(super) struct Inputs {
    pub arguments: Vec<Input>,
    /// Work that must precede the launch although the program does not read its results.
    pub after: Vec<Work>,
}

/// One argument of a launch.
pub(super) struct Input {
    pub value: Arc<Value>,
    pub donated: bool,
    /// Conversion of an argument of dynamic size to the static shape that the program takes.
    pub resized: Option<Resized>,
}

/// Argument of dynamic size for a program parameter of static shape.
pub(super) struct Resized {
    buffer: Buffer,
    shape: Arc<ArrayShape>,
}

impl Input {
    /// Creates the input for a program parameter of `shape` from a buffer and its value.
    pub fn new(buffer: &Buffer, value: Arc<Value>, donated: bool, shape: &Arc<ArrayShape>) -> Input {
        let resized = buffer.is_dynamic().then(|| {
            let buffer = buffer.with_value(buffer.device().clone(), value.clone());
            Resized { buffer, shape: shape.clone() }
        });
        Input { value, donated, resized }
    }

    /// Waits until a program on `device` can use the argument.
    fn read(self, device: &Device) -> Result<Argument> {
        match self.resized {
            Some(resized) => resized.read(device),
            None if self.donated => self.value.take(),
            None => self.value.read(),
        }
    }
}

impl Resized {
    /// Copies the array at its actual size; an error if that differs from the parameter's shape.
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
    /// Returns the work that the inputs depend on.
    pub fn works(&self) -> impl Iterator<Item = &Work> {
        self.arguments.iter().map(|input| input.value.work()).chain(&self.after)
    }

    /// Whether all preceding work is sent and has not failed.
    pub fn are_available(&self) -> bool {
        self.works().all(|work| work.is_sent() && work.event().is_ok())
    }

    /// Waits for the preceding work, then for the arguments, and returns the arguments.
    pub fn read(self, device: &Device) -> Result<Vec<Argument>> {
        self.after.iter().try_for_each(Work::wait)?;
        // All buffers of a device come from its single stream, so stream order makes them available; no event needs a
        // wait.
        self.arguments.into_iter().map(|input| input.read(device)).collect()
    }
}

/// Returns a donated value to its buffer.
pub(super) fn give_back(buffer: &Buffer, input: Input) {
    if input.donated {
        buffer.take_back(input.value);
    }
}
