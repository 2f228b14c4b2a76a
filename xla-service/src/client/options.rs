//! Options of a launch: donation, dispatch, cancellation, values for handlers.

use std::sync::Arc;

use xla_hlo::ops::RunContext;

use super::buffer::Buffer;
use crate::cancel::CancelToken;
use crate::signature::{ArgumentLeaf, Donation};

/// Options of a launch.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// Arguments to donate: their memory may be reused for results, and their buffers become unusable. Memory that is
    /// still shared is not overwritten, although its buffer counts as donated.
    pub donate: Donate,
    /// Thread that runs the program.
    pub dispatch: Dispatch,
    /// Token that cancels the run; a cancelled run returns [`Error::Cancelled`](xla_hlo::Error::Cancelled). `None` for
    /// a run that cannot be cancelled.
    pub cancel: Option<CancelToken>,
    /// Buffers that must be computed before the launch, even if the program does not read them, such as
    /// [tokens](crate::DeviceResults::token). Their errors make the run fail.
    pub after: Vec<Buffer>,
    /// Values for the handlers of custom calls.
    pub context: Option<Arc<RunContext>>,
}

/// Arguments that a launch donates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Donate {
    /// Donates the arguments with these numbers. They must include the arguments whose donation the module requires.
    These(Vec<usize>),
    /// Donates the arguments that the module declares ([`Donation::Welcome`], [`Donation::Required`]), except the given
    /// ones. The program writes to copies of the excepted arguments.
    Declared {
        /// Numbers of the arguments to keep.
        except: Vec<usize>,
    },
}

/// Thread that runs a program of one device. Such programs run on the thread of a host call (a handler of a custom
/// call, a callback) if they are launched inside it. Worker threads run the programs of several devices; a launch of
/// those inside a host call, or with [`Inline`](Dispatch::Inline), returns when they are complete, as does one with
/// [`WhenReady`](Dispatch::WhenReady) that need not wait for other work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatch {
    /// The calling thread waits for the arguments and sends the program to the device; on host platforms it runs the
    /// program.
    #[default]
    Inline,
    /// A worker thread of the client runs the program when its arguments are available. The call returns pending
    /// buffers immediately. Programs that draw from the device's random state or use infeed or outfeed keep their
    /// order.
    Queued,
    /// The calling thread runs the program if it is cheap and no wait is needed; otherwise a worker thread of the
    /// client does.
    Auto,
    /// The calling thread runs the program, however long it takes, if its arguments are available and no other wait is
    /// needed. Otherwise, and on several devices, a worker thread of the client does. The call waits for devices that
    /// execute a program together, if all of their arguments are available and no other wait is needed.
    ///
    /// For programs that call functions of the caller: their effects and [their errors](crate::DeviceResults::failure)
    /// are visible when the call returns.
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
