//! Job: a collective whose local members have arrived.
#![expect(unsafe_code, reason = "executes tasks on the memory of members that wait for them")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use xla_hlo::Result;

use super::exchange::Exchange;
use super::route::Route;
use crate::cancel::CancelToken;
use crate::collective::in_process::{Group, Job, Member, MemberMemory, caught, common_spec};
use crate::collective::{CollectiveSpec, MemberArguments};

/// A collective of several processes. One thread executes all of it.
#[derive(Debug)]
pub(super) struct ProcessJob {
    route: Arc<Route>,
    spec: Arc<CollectiveSpec>,
    /// Arguments and memory of the local members, in the order of their ranks.
    arguments: Vec<MemberArguments>,
    memory: Vec<MemberMemory>,
    /// Number of the collective in the clique.
    number: u64,
    is_claimed: AtomicBool,
    is_stopped: AtomicBool,
}

impl Job for ProcessJob {
    type Context = Arc<Route>;

    fn new(route: &Arc<Route>, group: &Group, number: u64, members: Vec<Member>) -> Result<ProcessJob> {
        let spec = common_spec(&members, group)?;
        let (memory, arguments) = members.into_iter().map(|member| (member.memory, member.arguments)).unzip();
        let [is_claimed, is_stopped] = [false; 2].map(AtomicBool::new);
        Ok(ProcessJob { route: route.clone(), spec, arguments, memory, number, is_claimed, is_stopped })
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn has_tasks(&self) -> bool {
        false
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.route.hub.mailbox.wake();
    }

    unsafe fn work(&self, cancel: &CancelToken) -> Result<()> {
        if self.is_claimed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (route, spec, number, is_stopped) = (&*self.route, &*self.spec, self.number, &self.is_stopped);
        let (arguments, memory) = (&self.arguments[..], &self.memory[..]);
        let exchange = Exchange { route, spec, arguments, memory, number, is_stopped, cancel };
        // SAFETY: all local members wait, as the caller guarantees, and this thread alone executes the job.
        caught(|| unsafe { exchange.run() })
    }
}
