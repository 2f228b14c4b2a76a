//! Order of the completions of executions with side effects.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use xla_service::Completion;

use crate::client::ClientState;

thread_local! {
    /// Completion of the last execution with side effects that this thread started, by client and device.
    static LAST: RefCell<HashMap<(usize, usize), Completion>> = RefCell::default();
}

/// Returns the completion of an execution with side effects. It comes no earlier than those of the same thread's
/// previous executions on the device.
///
/// Callers wait for the last execution on a device and assume that the effects of all earlier ones are complete. The
/// executions themselves are not ordered, because a handler may wait for an execution that another thread starts later.
pub(crate) fn in_order(client: &Arc<ClientState>, device: usize, end: Completion) -> Completion {
    LAST.with_borrow_mut(|last| {
        let last = last.entry((Arc::as_ptr(client).addr(), device)).or_default();
        *last = end.not_before(last);
        last.clone()
    })
}
