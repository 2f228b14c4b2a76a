//! Counter that random numbers are drawn from.

use std::sync::{Arc, Mutex, PoisonError};

/// Initial value of a counter, equal to that of XLA's CPU backend.
const FIRST: u128 = 0x0701_2395;

/// 128-bit counter from which `rng` and `rng-get-and-update-state` draw, shared by all programs of a device.
///
/// Clones are handles to the same counter. No value is drawn twice before the counter wraps around; the order in which
/// concurrent programs draw is unspecified.
#[derive(Clone, Debug)]
pub struct RandomState(Arc<Mutex<u128>>);

impl RandomState {
    /// Creates a counter with the initial value.
    pub fn new() -> RandomState {
        RandomState(Arc::new(Mutex::new(FIRST)))
    }

    /// Advances the counter by `delta`, wrapping around, and returns its previous value.
    pub fn advance(&self, delta: i64) -> u128 {
        // A poisoned lock is harmless: the counter is assigned as a whole.
        let mut counter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *counter;
        *counter = before.wrapping_add_signed(i128::from(delta));
        before
    }
}

impl Default for RandomState {
    fn default() -> RandomState {
        RandomState::new()
    }
}
