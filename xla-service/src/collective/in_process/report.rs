//! Messages about members that have not arrived.

use std::time::Duration;

use xla_hlo::Error;

use super::group::Group;

/// Describes a wait: the instruction, the missing members, and the members that wait for them.
pub(super) fn describe(group: &Group, waited: Duration, has_arrived: impl Fn(usize) -> bool) -> String {
    let list = |arrived: bool| -> Vec<String> {
        let ranks = group.ranks.iter().copied().filter(|&rank| has_arrived(rank) == arrived);
        ranks.map(|rank| group.describe(rank)).collect()
    };
    format!(
        "{} has waited {waited:.1?} for devices {}; devices {} have arrived",
        group.key.instruction(),
        list(false).join(", "),
        list(true).join(", ")
    )
}

/// Returns the error of a wait that took too long.
pub(in crate::collective) fn timeout(description: String) -> Error {
    Error::failed_precondition(description)
        .note("a device is stuck or slow, or the devices of a group execute different collectives")
}
