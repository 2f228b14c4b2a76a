//! States of a loaded program's custom calls on raw memory.

use std::collections::HashMap;
use std::sync::Arc;

use super::context::CallState;
use super::handler::CustomCallHandler;
use crate::{CompId, InstrId, Instruction};

/// States of a loaded program's custom calls on raw memory, with the handlers that were registered when it was loaded;
/// see [`CustomCallRegistry::instantiate`](super::CustomCallRegistry::instantiate).
#[derive(Default)]
pub struct CallStates {
    calls: Vec<LoadedCall>,
    /// Indices into `calls` by the addresses of the instructions.
    places: HashMap<usize, usize>,
}

/// A custom call with its handler and state.
pub(super) struct LoadedCall {
    pub instruction: (CompId, InstrId),
    pub handler: Arc<dyn CustomCallHandler>,
    pub state: CallState,
}

impl CallStates {
    /// Whether there are no states.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn push(&mut self, instruction: &Instruction, call: LoadedCall) {
        self.places.insert(std::ptr::from_ref(instruction).addr(), self.calls.len());
        self.calls.push(call);
    }

    pub(super) fn calls(&self) -> &[LoadedCall] {
        &self.calls
    }

    pub(super) fn find(&self, instruction: &Instruction) -> Option<&LoadedCall> {
        self.places.get(&std::ptr::from_ref(instruction).addr()).map(|&place| &self.calls[place])
    }
}

impl std::fmt::Debug for CallStates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CallStates({} calls)", self.calls.len())
    }
}
