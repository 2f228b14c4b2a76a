//! Options of a launch: donation, thread, cancellation, values for handlers.

use std::sync::Arc;

use xla_hlo::ops::RunContext;

use super::buffer::Buffer;
use crate::cancel::CancelToken;
use crate::signature::{ArgumentLeaf, Donation};

/// Options of a launch.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// Arguments to donate: their memory may be reused for results, and their buffers cannot be used again. What others
    /// have a share of is left alone, though its buffer counts as donated.
    pub donate: Donate,
    /// The thread that runs the program.
    pub dispatch: Dispatch,
    /// By which the run can be asked to stop; [`Error::Cancelled`](xla_hlo::Error::Cancelled) is then its error. `None`
    /// for a run that nobody stops.
    pub cancel: Option<CancelToken>,
    /// Buffers that must be computed before, whether the program reads them or not, such as
    /// [tokens](crate::DeviceResults::token); their errors are those of the run.
    pub after: Vec<Buffer>,
    /// Values for the handlers of custom calls.
    pub context: Option<Arc<RunContext>>,
}

/// Arguments that a launch donates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Donate {
    /// Those of these numbers. What the module requires to be donated must be among them.
    These(Vec<usize>),
    /// Those that the module declares to be donated ([`Donation::Welcome`], [`Donation::Required`]), but for those of
    /// these numbers; of the latter, the program gets copies where it writes them.
    Declared {
        /// Numbers of arguments to keep.
        except: Vec<usize>,
    },
}

/// The thread that runs a program. What is launched from inside of a host call (a handler of a custom call, a callback)
/// always runs on the thread of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatch {
    /// The calling thread, after waiting for the arguments, sends it to the device. On the host that means: runs it.
    #[default]
    Inline,
    /// A thread of the client, when its arguments are there; the call returns at once with pending buffers. Programs
    /// that draw random numbers from the device's state, or use infeed and outfeed, also keep their order.
    Queued,
    /// The calling thread if the program is cheap and nothing must be waited for, else a thread of the client.
    Auto,
    /// The calling thread, whatever the program costs, if its arguments are there and nothing else must be waited for;
    /// otherwise, and on several devices, a thread of the client.
    ///
    /// For programs that call functions of the caller: it sees their effects, and
    /// [their errors](crate::DeviceResults::failure), when the call returns.
    WhenReady,
}

impl Default for Donate {
    fn default() -> Self {
        Donate::These(Vec::new())
    }
}

impl From<Vec<usize>> for Donate {
    fn from(numbers: Vec<usize>) -> Self {
        Donate::These(numbers)
    }
}

impl FromIterator<usize> for Donate {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        Donate::These(numbers.into_iter().collect())
    }
}

impl Donate {
    pub(super) fn takes(&self, index: usize, leaf: &ArgumentLeaf) -> bool {
        match self {
            Donate::These(numbers) => numbers.contains(&index),
            Donate::Declared { except } => leaf.donation != Donation::Unused && !except.contains(&index),
        }
    }
}
