//! Execution context of a call: the data that its handler requests from the runtime.
//!
//! The object that the first stage sets lives as long as the program; objects of the other stages live as long as the
//! call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use xla_hlo::{Error, Result};

/// Number of stages of a call: instantiate, prepare, initialize, execute.
pub(crate) const STAGES: usize = 4;

/// User data for the handlers of a run, by type id: addresses that the caller owns.
///
/// Frameworks create one for each run, with one or two types: a search of a short list is faster than sorting it.
#[derive(Clone, Debug, Default)]
pub struct UserData(Arc<Mutex<TypedAddresses>>);

type TypedAddresses = SmallVec<[(i64, usize); 2]>;

impl UserData {
    /// Adds the data of a type. Fails with [`Error::InvalidArgument`] if there is data of that type already.
    pub fn add(&self, type_id: i64, address: usize) -> Result<()> {
        let mut data = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if data.iter().any(|(found, _)| *found == type_id) {
            return Err(Error::invalid_argument(format!("the execution context already has data of type {type_id}")));
        }
        data.push((type_id, address));
        Ok(())
    }

    /// Returns the data of a type.
    pub fn get(&self, type_id: i64) -> Option<usize> {
        let data = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        data.iter().find(|(found, _)| *found == type_id).map(|(_, address)| *address)
    }
}

/// Context that a call's handler receives in each stage.
#[derive(Debug, Default)]
pub(crate) struct CallContext {
    pub user_data: UserData,
    pub run_id: i64,
    pub ordinal: i32,
    /// Object that the first stage set when the program was loaded.
    pub instance: Option<(i64, usize)>,
    /// Object that each stage set: type and address.
    states: [Mutex<Option<(i64, usize)>>; STAGES],
    /// Memory that the handler allocated, by its address; freed at the latest with the context.
    memory: Mutex<BTreeMap<usize, Vec<u8>>>,
}

impl CallContext {
    /// Creates the context of a run, with the object that the first stage set.
    pub fn of_run(user_data: UserData, run_id: i64, ordinal: i32, instance: Option<(i64, usize)>) -> CallContext {
        CallContext { user_data, run_id, ordinal, instance, ..CallContext::default() }
    }

    fn slot(&self, stage: i32) -> Result<&Mutex<Option<(i64, usize)>>> {
        let slot = usize::try_from(stage).ok().and_then(|stage| self.states.get(stage));
        slot.ok_or_else(|| Error::invalid_argument(format!("stage {stage} does not exist")))
    }

    /// Stores the object of a stage for later stages; each stage may set one.
    pub fn set_state(&self, stage: i32, type_id: i64, address: usize) -> Result<()> {
        let mut state = self.slot(stage)?.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_some() {
            return Err(Error::failed_precondition(format!("the state of stage {stage} is already set")));
        }
        *state = Some((type_id, address));
        Ok(())
    }

    /// Returns the object that a stage set.
    pub fn state(&self, stage: i32, type_id: i64) -> Result<usize> {
        let left = *self.slot(stage)?.lock().unwrap_or_else(PoisonError::into_inner);
        match left.or(self.instance.filter(|_| stage == 0)) {
            None => Err(Error::not_found("State is not set")),
            Some((found, _)) if found != type_id => Err(Error::invalid_argument(format!(
                "the state of stage {stage} has type {found}, but type {type_id} was requested"
            ))),
            Some((_, address)) => Ok(address),
        }
    }

    /// Takes the objects that the stages set: types and addresses.
    pub fn take_states(&self) -> Vec<(i64, usize)> {
        let take = |state: &Mutex<Option<(i64, usize)>>| state.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.states.iter().filter_map(take).collect()
    }

    /// Allocates memory for the duration of the call; `None` if there is too little, or if the alignment is not a power
    /// of two.
    pub fn allocate(&self, size: usize, alignment: usize) -> Option<usize> {
        let alignment = alignment.max(1);
        let room = size.checked_add(alignment).filter(|_| alignment.is_power_of_two())?;
        let mut block = Vec::new();
        xla_hlo::out_of_memory::fallible(|| block.try_reserve_exact(room)).ok()?;
        block.resize(room, 0_u8);
        let address = block.as_mut_ptr().expose_provenance().next_multiple_of(alignment);
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(address, block);
        Some(address)
    }

    /// Frees memory of this context; returns whether the address belongs to it.
    pub fn free(&self, address: usize) -> bool {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(&address).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_leaves_one_object() {
        let context = CallContext::default();
        assert_eq!(context.state(0, 3).unwrap_err().message(), "State is not set");
        context.set_state(0, 3, 64).unwrap();
        assert!(context.set_state(0, 3, 65).is_err());
        assert!(context.set_state(4, 3, 65).is_err());
        assert!(context.set_state(-1, 3, 65).is_err());
        assert_eq!(context.state(0, 3).unwrap(), 64);
        assert!(context.state(0, 4).is_err());
        assert_eq!(context.take_states(), [(3, 64)]);
        assert!(context.state(0, 3).is_err());
    }

    #[test]
    fn memory_is_aligned_and_freed_once() {
        let context = CallContext::default();
        let address = context.allocate(100, 256).unwrap();
        assert_eq!(address % 256, 0);
        assert!(context.free(address));
        assert!(!context.free(address));
        assert_eq!(context.allocate(8, 3), None);
        assert_eq!(context.allocate(usize::MAX, 1), None);
    }

    #[test]
    fn user_data_is_added_once() {
        let data = UserData::default();
        data.add(2, 64).unwrap();
        assert!(data.add(2, 65).is_err());
        assert_eq!((data.get(2), data.get(3)), (Some(64), None));
    }
}
