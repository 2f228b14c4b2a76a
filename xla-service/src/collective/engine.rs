//! Traits of collective engines and communicators.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use xla_hlo::{Error, Result};

use super::call::CollectiveCall;
use super::key::{CliqueKey, RunKey};

/// Transport of collectives: creates the communicators of cliques.
///
/// # Contract
///
/// - Members that request equal keys communicate with each other. Members of different keys never do.
/// - An aborted run stays aborted until [`CollectiveEngine::finish`]: members that wait and members that arrive later
///   receive a copy of the first error within one second.
/// - Two live runs of an engine have different keys. A run is live until [`CollectiveEngine::finish`]. This is the last
///   call with its key: a later `clique` or `abort` would begin another run.
/// - All methods may be called from any thread, also while other threads wait in [`Communicator::run`].
pub trait CollectiveEngine: fmt::Debug + Send + Sync {
    /// Returns the communicator of a clique, and creates it for the first member. It does not wait for the others.
    /// Fails if the run was aborted.
    fn clique(&self, key: &CliqueKey) -> Result<Arc<dyn Communicator>>;

    /// Ends all collectives of a run with this error: waiting ones, and ones that are requested later.
    fn abort(&self, run: RunKey, error: &Error);

    /// Returns the waiting times of members.
    fn timeouts(&self) -> Timeouts {
        Timeouts::default()
    }

    /// Releases the resources of a run, after the programs of all of its devices in this process have ended.
    fn finish(&self, run: RunKey);
}

/// Executes the collectives of one clique.
///
/// # Contract
///
/// - Call number `n` of each member belongs to the same collective, so an instruction in a loop uses one communicator.
///   All members pass equal [`specs`](super::CollectiveSpec).
/// - [`Communicator::run`] returns after all members have arrived and the member's results are written. From then on
///   no other member accesses its operands and results.
/// - If it fails, the contents of the results are unspecified. Every member then receives an error.
pub trait Communicator: fmt::Debug + Send + Sync {
    /// Returns the key that the communicator was created for.
    fn key(&self) -> &CliqueKey;

    /// Executes a collective as the member of this rank, together with all others. Each member calls from its own
    /// thread.
    ///
    /// Fails if the arguments do not fit the spec, if members differ in their specs, if a member does not arrive in
    /// time, if the clique is aborted, or if the call's token is cancelled.
    fn run(&self, rank: usize, call: CollectiveCall<'_>) -> Result<()>;

    /// Ends all members with this error: waiting ones, and ones that arrive later.
    fn abort(&self, error: &Error);
}

/// Maximum waiting times of a member for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Time after which a warning names the missing devices.
    pub warn: Duration,
    /// Time after which the collective fails.
    pub end: Duration,
}

impl Default for Timeouts {
    /// Returns the defaults of XLA:CPU: 20 s and 40 s.
    fn default() -> Timeouts {
        Timeouts { warn: Duration::from_secs(20), end: Duration::from_secs(40) }
    }
}
