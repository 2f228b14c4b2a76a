//! Tests of the reserve for allocations without an error path. The reserve belongs to the process, so that only one
//! test may use it.

use xla_hlo::out_of_memory::{ensure_room, fallible, release_reserve};

#[test]
fn a_reserve_is_released_once_and_not_for_requests_that_can_fail() {
    ensure_room().unwrap();
    assert!(!fallible(release_reserve));
    assert!(release_reserve());
    assert!(!release_reserve());
    ensure_room().unwrap();
    assert!(std::panic::catch_unwind(|| fallible(|| panic!())).is_err());
    assert!(release_reserve(), "the flag is as it was before the panic");
}
