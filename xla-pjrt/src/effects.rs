//! Order of the ends of runs that have effects.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use xla_service::Completion;

use crate::client::ClientState;

thread_local! {
    /// The end of the last run with effects that this thread began, by client and device.
    static LAST: RefCell<HashMap<(usize, usize), Completion>> = RefCell::default();
}

/// The end of a run with effects, not before the ends of those that the same thread began on the device.
///
/// Callers wait for the last run of a device and take it that the effects of all are there. The runs themselves have no
/// order: a handler may wait for what another thread begins later.
pub(crate) fn in_order(client: &Arc<ClientState>, device: usize, end: Completion) -> Completion {
    LAST.with_borrow_mut(|last| {
        let last = last.entry((Arc::as_ptr(client).addr(), device)).or_default();
        *last = end.not_before(last);
        last.clone()
    })
}
