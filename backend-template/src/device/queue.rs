//! Command queues: send tasks in order to a thread.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use xla_hlo::{Error, Result};

use super::command::{Command, Task};
use super::event::Event;
use super::fault::Faults;
use super::memory::Region;
use super::worker::Worker;

/// Queue of work on one device. Dropping it waits until all of its work is done.
#[derive(Debug)]
pub struct Queue {
    tasks: Arc<Drain>,
    thread: Option<JoinHandle<()>>,
}

impl Queue {
    pub(super) fn start(faults: Arc<Faults>) -> Result<Queue> {
        let (sender, tasks) = mpsc::channel();
        let work = move || Worker::new(faults).run(tasks);
        let thread = thread::Builder::new().name("device-queue".to_string()).spawn(work);
        let thread = thread.map_err(|e| {
            Error::resource_exhausted(format!("cannot start a thread for a device queue: {e}")).with_source(e)
        })?;
        Ok(Queue { tasks: Arc::new(Drain(Mutex::new(Some(sender)))), thread: Some(thread) })
    }

    /// Appends a command.
    pub fn submit(&self, command: Command) -> Result<()> {
        self.tasks.push(Task::Command(command))
    }

    /// Waits for all earlier work and reads memory. Returns the error of the command that should have written the
    /// memory, or of the copy itself.
    pub fn download(&self, from: Region) -> Result<Vec<u8>> {
        let (reply, answer) = mpsc::channel();
        self.tasks.push(Task::Download { from, reply })?;
        answer.recv().map_err(|_| ended())?
    }

    /// Records an event that is reached when all work sent so far is done.
    pub fn record(&self) -> Result<Event> {
        self.tasks.record()
    }

    /// Makes later work wait until an event is reached or has failed. If it failed, the next event of this queue
    /// reports the same error.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.tasks.push(Task::Wait(event.clone()))
    }

    pub(super) fn drain_handle(&self) -> std::sync::Weak<Drain> {
        Arc::downgrade(&self.tasks)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.tasks.close();
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its pending events have failed with an error already.
            drop(thread.join());
        }
    }
}

/// Sending end of a queue. The device holds a weak handle to it, to wait until the queue is idle.
#[derive(Debug)]
pub(super) struct Drain(Mutex<Option<Sender<Task>>>);

impl Drain {
    fn push(&self, task: Task) -> Result<()> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = sender.as_ref().ok_or_else(ended)?;
        sender.send(task).map_err(|_| ended())
    }

    fn record(&self) -> Result<Event> {
        let (event, completer) = Event::pending();
        self.push(Task::Record(completer))?;
        Ok(event)
    }

    /// Waits until all work sent so far is done. Leaves errors to the next event.
    pub fn drain(&self) {
        let (reply, answer) = mpsc::channel();
        if self.push(Task::Pause(reply)).is_ok() {
            // An error means that the queue has ended, so it is idle as well.
            let _ = answer.recv();
        }
    }

    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn ended() -> Error {
    Error::failed_precondition("the device queue has ended")
}
