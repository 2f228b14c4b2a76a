//! Arrays on a device, perhaps still being computed.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use xla_hlo::{ArrayShape, Error, Literal, Result, ResultExt};

use super::Client;
use crate::executable::Argument;
use crate::executor::{DeviceMemory, Event};

/// An array on a device. Cloning gives another handle to the same array.
///
/// It may still be computed; methods that need the value wait for it. Once it was donated to a program, every use by
/// any handle is [`Error::FailedPrecondition`]. If the program that should compute it fails, every use gives that
/// program's error.
#[derive(Clone)]
pub struct Buffer {
    client: Client,
    shape: Arc<ArrayShape>,
    slot: Arc<Slot>,
}

impl Buffer {
    pub(super) fn new(client: Client, shape: Arc<ArrayShape>, slot: Arc<Slot>) -> Buffer {
        Buffer { client, shape, slot }
    }

    /// The shape, with the layout it has on the device.
    pub fn shape(&self) -> &ArrayShape {
        &self.shape
    }

    /// The client that made it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the value is there, so that nothing would wait for it; an error if it never will be.
    pub fn is_ready(&self) -> Result<bool> {
        self.slot.is_ready()
    }

    /// Waits for the value.
    pub fn wait(&self) -> Result<()> {
        self.slot.read()?.1.wait()
    }

    /// Waits for the value and copies it to the host.
    pub fn to_literal(&self) -> Result<Literal> {
        let (memory, event) = self.slot.read()?;
        event.wait()?;
        let device = &self.client.0;
        let literal = device.transfer.read(&*device.stream, &memory, 0, &self.shape);
        literal.context(|| format!("platform {}, an array of {} for the host", device.platform, self.shape))
    }

    /// Waits for the value and copies its bytes as they lie on the device: in the layout of [`Buffer::shape`], padding
    /// included.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (memory, event) = self.slot.read()?;
        event.wait()?;
        let device = &self.client.0;
        let mut bytes = vec![0; device.transfer.byte_size(&self.shape)?];
        device.stream.copy_to_host(&memory, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Whether it was donated.
    pub fn is_donated(&self) -> bool {
        self.slot.state().donated
    }

    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.slot.state();
        let donated = if state.donated { ", donated" } else { "" };
        write!(f, "Buffer({} on {}{donated})", self.shape, self.client.platform())
    }
}

/// Where a value will be.
#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Debug)]
struct State {
    value: Value,
    /// Set at once when a program is given the value, though it may take the memory later.
    donated: bool,
}

#[derive(Debug)]
enum Value {
    Pending,
    Ready(Arc<DeviceMemory>, Event),
    Failed(Error),
    /// Donated, and the memory is gone.
    Taken,
}

impl Slot {
    pub fn pending() -> Arc<Slot> {
        Slot::with(Value::Pending)
    }

    pub fn ready(memory: DeviceMemory, event: Event) -> Arc<Slot> {
        Slot::with(Value::Ready(Arc::new(memory), event))
    }

    fn with(value: Value) -> Arc<Slot> {
        Arc::new(Slot { state: Mutex::new(State { value, donated: false }), filled: Condvar::new() })
    }

    /// Fills a pending slot.
    pub fn fill(&self, value: Result<(DeviceMemory, Event)>) {
        self.state().value = match value {
            Ok((memory, event)) => Value::Ready(Arc::new(memory), event),
            Err(error) => Value::Failed(error),
        };
        self.filled.notify_all();
    }

    /// Marks the value as donated. An error if it was before, or is an error itself.
    pub fn donate(&self) -> Result<()> {
        let mut state = self.state();
        state.check_usable()?;
        state.donated = true;
        Ok(())
    }

    /// Takes back a donation to a program that was not launched after all.
    pub fn take_back(&self) {
        self.state().donated = false;
    }

    /// An error if the value was donated or failed.
    pub fn check_usable(&self) -> Result<()> {
        self.state().check_usable()
    }

    /// Waits for the value and borrows it; for users of the buffer.
    pub fn read(&self) -> Result<(Arc<DeviceMemory>, Event)> {
        let state = self.state();
        state.check_usable()?;
        self.wait_filled(state).share()
    }

    /// Waits for the value and borrows it, though it may have been donated to somebody later in the queue.
    pub fn read_for_program(&self) -> Result<(Argument, Event)> {
        let (memory, event) = self.wait_filled(self.state()).share()?;
        Ok((Argument::Shared(memory), event))
    }

    /// Waits for a value that was donated, and takes it. While others still read it, it is shared instead.
    pub fn take_for_program(&self) -> Result<(Argument, Event)> {
        let mut state = self.wait_filled(self.state());
        let (memory, event) = state.share()?;
        state.value = Value::Taken;
        drop(state);
        Ok((Arc::try_unwrap(memory).map_or_else(Argument::Shared, Argument::Donated), event))
    }

    fn is_ready(&self) -> Result<bool> {
        let state = self.state();
        state.check_usable()?;
        match &state.value {
            Value::Pending => Ok(false),
            Value::Ready(_, event) => event.is_reached(),
            Value::Failed(_) | Value::Taken => Ok(true),
        }
    }

    fn wait_filled<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while matches!(state.value, Value::Pending) {
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check_usable(&self) -> Result<()> {
        match &self.value {
            Value::Failed(error) => Err(error.again()),
            Value::Pending | Value::Ready(..) | Value::Taken if self.donated => {
                Err(Error::failed_precondition("the buffer was donated to a program and cannot be used again"))
            }
            Value::Pending | Value::Ready(..) | Value::Taken => Ok(()),
        }
    }

    fn share(&self) -> Result<(Arc<DeviceMemory>, Event)> {
        match &self.value {
            Value::Ready(memory, event) => Ok((memory.clone(), event.clone())),
            Value::Failed(error) => Err(error.again()),
            Value::Taken => Err(Error::failed_precondition("the buffer was donated to a program that has taken it")),
            Value::Pending => Err(Error::internal("a pending buffer was read")),
        }
    }
}
