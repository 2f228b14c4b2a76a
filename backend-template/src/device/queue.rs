//! Command queues: tasks in order, handed to a thread.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use xla_hlo::{Error, Result};

use super::command::{Command, Task};
use super::event::Event;
use super::fault::Faults;
use super::memory::Region;
use super::worker::Worker;

/// A queue of work on one device. Dropping it waits until everything in it is done.
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
        let thread = thread
            .map_err(|e| Error::resource_exhausted(format!("no thread for a device queue: {e}")).with_source(e))?;
        Ok(Queue { tasks: Arc::new(Drain(Mutex::new(Some(sender)))), thread: Some(thread) })
    }

    /// Adds a command at the end.
    pub fn submit(&self, command: Command) -> Result<()> {
        self.tasks.push(Task::Command(command))
    }

    /// Reads memory when everything before it is done. The error is that of the command that should have written it, or
    /// of the copy itself.
    pub fn download(&self, from: Region) -> Result<Vec<u8>> {
        let (reply, answer) = mpsc::channel();
        self.tasks.push(Task::Download { from, reply })?;
        answer.recv().map_err(|_| ended())?
    }

    /// An event that is reached when everything sent so far is done.
    pub fn record(&self) -> Result<Event> {
        self.tasks.record()
    }

    /// Makes work sent from now on wait for an event, whether that is reached or fails. Its error is then told by
    /// this queue's next event too.
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
            // A thread that died has left its events failed; there is nobody else to tell.
            drop(thread.join());
        }
    }
}

/// The way into a queue.
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

    /// Waits until everything sent so far is done. Does not take the error from those who wait for events.
    pub fn drain(&self) {
        let (reply, answer) = mpsc::channel();
        if self.push(Task::Pause(reply)).is_ok() {
            // An error says that the queue has ended, which is as good.
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
