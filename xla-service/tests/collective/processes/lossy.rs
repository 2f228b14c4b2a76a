//! Transport that delays and reorders messages, and loses all messages of processes that are stuck.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use xla_hlo::Result;
use xla_service::collective::processes::{InMemory, Inbox, Message, Progress, Transport};

use crate::support::Random;

/// Endpoint of a process. Its delayed messages are delivered by polls and by the cluster's thread.
#[derive(Debug)]
pub struct Lossy {
    network: InMemory,
    delayed: Mutex<(Vec<(usize, Message)>, Random)>,
    inbox: Mutex<Option<Arc<dyn Inbox>>>,
    /// Number of messages that the process sends before it is stuck.
    pub alive_for: AtomicUsize,
    /// Whether a wait for another process has timed out.
    pub has_timed_out: AtomicBool,
}

impl Lossy {
    pub fn network(size: usize, random: &mut Random) -> Vec<Arc<Lossy>> {
        let endpoint = |network| Lossy {
            network,
            delayed: Mutex::new((vec![], Random(random.next()))),
            inbox: Mutex::default(),
            alive_for: AtomicUsize::new(usize::MAX),
            has_timed_out: AtomicBool::new(false),
        };
        InMemory::network(size).into_iter().map(endpoint).map(Arc::new).collect()
    }

    /// Returns the receiver of this process.
    pub fn inbox(&self) -> Arc<dyn Inbox> {
        self.inbox.lock().unwrap().clone().unwrap()
    }

    /// Sends a delayed message. Returns whether there was one.
    pub fn flush_one(&self) -> bool {
        let mut delayed = self.delayed.lock().unwrap();
        let (messages, random) = &mut *delayed;
        if messages.is_empty() {
            return false;
        }
        let chosen = random.below(messages.len());
        let (to, message) = messages.swap_remove(chosen);
        drop(delayed);
        self.network.send(to, message).unwrap();
        true
    }
}

impl Transport for Lossy {
    fn rank(&self) -> usize {
        self.network.rank()
    }

    fn size(&self) -> usize {
        self.network.size()
    }

    fn location(&self, rank: usize) -> String {
        format!("pid {} on host-{rank}", 4000 + rank)
    }

    fn connect(&self, inbox: Arc<dyn Inbox>) -> Result<()> {
        *self.inbox.lock().unwrap() = Some(inbox.clone());
        self.network.connect(inbox)
    }

    fn send(&self, to: usize, message: Message) -> Result<()> {
        let left = self.alive_for.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() {
            self.delayed.lock().unwrap().0.push((to, message));
        }
        Ok(())
    }

    fn timed_out(&self) {
        self.has_timed_out.store(true, Ordering::Relaxed);
    }

    fn poll(&self) -> Progress {
        if self.flush_one() { Progress::Made } else { Progress::Idle }
    }
}
