//! Slots: states of a buffer's value (pending, ready, failed, donated).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};

use crate::executable::Argument;
use crate::executor::{DeviceMemory, Event};

/// Slot that a value will be put into.
#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<SlotState>,
    filled: Condvar,
}

#[derive(Debug)]
struct SlotState {
    value: SlotValue,
    /// Set at once when a program is given the value, though it may take the memory later.
    donated: bool,
}

#[derive(Debug)]
enum SlotValue {
    Pending,
    Ready(Arc<DeviceMemory>, Event),
    Failed(Error),
    /// Donated, and the memory is gone.
    Taken,
}

impl Slot {
    pub fn pending() -> Arc<Slot> {
        Slot::with(SlotValue::Pending)
    }

    pub fn ready(memory: DeviceMemory, event: Event) -> Arc<Slot> {
        Slot::with(SlotValue::Ready(Arc::new(memory), event))
    }

    fn with(value: SlotValue) -> Arc<Slot> {
        Arc::new(Slot { state: Mutex::new(SlotState { value, donated: false }), filled: Condvar::new() })
    }

    /// Fills a pending slot.
    pub fn fill(&self, value: Result<(DeviceMemory, Event)>) {
        self.state().value = match value {
            Ok((memory, event)) => SlotValue::Ready(Arc::new(memory), event),
            Err(error) => SlotValue::Failed(error),
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
        state.value = SlotValue::Taken;
        drop(state);
        Ok((Arc::try_unwrap(memory).map_or_else(Argument::Shared, Argument::Donated), event))
    }

    pub fn is_ready(&self) -> Result<bool> {
        let state = self.state();
        state.check_usable()?;
        match &state.value {
            SlotValue::Pending => Ok(false),
            SlotValue::Ready(_, event) => event.is_reached(),
            SlotValue::Failed(_) | SlotValue::Taken => Ok(true),
        }
    }

    /// Whether it was donated.
    pub fn is_donated(&self) -> bool {
        self.state().donated
    }

    fn wait_filled<'a>(&'a self, mut state: MutexGuard<'a, SlotState>) -> MutexGuard<'a, SlotState> {
        while matches!(state.value, SlotValue::Pending) {
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotState {
    fn check_usable(&self) -> Result<()> {
        match &self.value {
            SlotValue::Failed(error) => Err(error.again()),
            SlotValue::Pending | SlotValue::Ready(..) | SlotValue::Taken if self.donated => {
                Err(Error::failed_precondition("the buffer was donated to a program and cannot be used again"))
            }
            SlotValue::Pending | SlotValue::Ready(..) | SlotValue::Taken => Ok(()),
        }
    }

    fn share(&self) -> Result<(Arc<DeviceMemory>, Event)> {
        match &self.value {
            SlotValue::Ready(memory, event) => Ok((memory.clone(), event.clone())),
            SlotValue::Failed(error) => Err(error.again()),
            SlotValue::Taken => {
                Err(Error::failed_precondition("the buffer was donated to a program that has taken it"))
            }
            SlotValue::Pending => Err(Error::internal("a pending buffer was read")),
        }
    }
}
