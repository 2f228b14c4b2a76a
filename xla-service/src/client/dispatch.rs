//! Dispatch queue: a thread that runs queued programs in order.

use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Jobs in the order they came, one at a time, on a thread of their own.
#[derive(Debug)]
pub(super) struct DispatchQueue {
    sender: Mutex<Option<Sender<Job>>>,
    thread: Option<JoinHandle<()>>,
}

/// A job. It must not panic: it catches panics of its callees.
pub(super) type Job = Box<dyn FnOnce() + Send>;

impl DispatchQueue {
    /// A queue whose thread starts now. If the system has no thread left, jobs run where they are pushed.
    pub fn new(name: &str) -> DispatchQueue {
        let (sender, jobs) = mpsc::channel::<Job>();
        let run = move || jobs.into_iter().for_each(|job| job());
        let thread = thread::Builder::new().name(format!("xla-{name}")).spawn(run).ok();
        DispatchQueue { sender: Mutex::new(thread.is_some().then_some(sender)), thread }
    }

    /// Adds a job at the end.
    pub fn push(&self, job: Job) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        match &*sender {
            None => {
                drop(sender);
                job();
            }
            Some(open) => {
                if let Err(mpsc::SendError(job)) = open.send(job) {
                    drop(sender);
                    job();
                }
            }
        }
    }
}

impl Drop for DispatchQueue {
    /// Waits until all jobs are done, unless the last handle went with a job on the queue's own thread.
    fn drop(&mut self) {
        self.sender.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A job that panicked after all has been reported by the panic hook; there is nobody left to tell.
            drop(thread.join());
        }
    }
}
