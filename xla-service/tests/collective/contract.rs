//! Contract of transports, checked by all processes of a job at the same time.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};
use xla_service::collective::processes::{Inbox, Message, MessageId, Progress, Transport};

/// Limit of each wait.
const LIMIT: Duration = Duration::from_secs(60);

/// Polling interval of the received messages.
const POLL: Duration = Duration::from_millis(20);

/// Numbers of bytes on both sides of the limits of transports: 16 KiB and 1 MiB.
const SIZES: [usize; 7] = [0, 1, 16 << 10, (16 << 10) + 1, 1 << 20, (1 << 20) + 1, 5_000_001];

/// Number of short messages that each of [`SENDERS`] threads sends to each process.
const SHORT_MESSAGES: usize = 500;
const SENDERS: usize = 3;

/// [`MessageId::run`] of each step.
const EARLY: u64 = 1;
const SIZED: u64 = 2;
const SHORT: u64 = 3;
const LONG: u64 = 4;
const LAST: u64 = 5;

/// Bytes of each arrival of a message, by sender and identity.
type Arrivals = BTreeMap<(usize, MessageId), Vec<Vec<u8>>>;

/// Receiver that records all messages.
#[derive(Debug, Default)]
struct Recorder {
    messages: Mutex<Arrivals>,
    /// Errors of lost processes.
    lost: Mutex<BTreeMap<usize, Error>>,
    changed: Condvar,
}

impl Inbox for Recorder {
    fn receive(&self, from: usize, id: MessageId, bytes: Vec<u8>) {
        self.messages.lock().unwrap().entry((from, id)).or_default().push(bytes);
        self.changed.notify_all();
    }

    fn lost(&self, rank: usize, error: Error) {
        self.lost.lock().unwrap().entry(rank).or_insert(error);
        self.changed.notify_all();
    }
}

/// Returns the bytes of a message: they depend on sender and identity.
fn contents(from: usize, id: MessageId, size: usize) -> Vec<u8> {
    let first = (from as u64).wrapping_mul(7) ^ id.run.wrapping_mul(31) ^ id.part.wrapping_mul(131);
    (0..size).map(|i| (first.wrapping_add(i as u64).wrapping_mul(0x9e37_79b9) >> 8) as u8).collect()
}

fn failure(text: String) -> Error {
    Error::internal(text)
}

/// Process of a check.
struct Check<'a> {
    transport: &'a dyn Transport,
    recorder: Arc<Recorder>,
}

/// Checks the contract as one of the processes of a job. `meet` waits for the other processes, if it can.
pub fn check(transport: Arc<dyn Transport>, meet: &dyn Fn()) -> Result<()> {
    let check = Check { transport: &*transport, recorder: Arc::default() };
    check.send_all(EARLY, 0..1, |_| 10)?;
    // The messages of the others arrive before this process has a receiver.
    meet();
    transport.connect(check.recorder.clone())?;
    check.receive_all(EARLY, 0..1, |_| 10)?;
    check.second_receiver()?;
    check.unknown_process()?;
    check.send_all(SIZED, 0..SIZES.len(), |part| SIZES[part])?;
    check.receive_all(SIZED, 0..SIZES.len(), |part| SIZES[part])?;
    check.short_messages()?;
    check.locations()?;
    check.send_all(LONG, 0..SIZES.len(), |part| SIZES[part])?;
    check.receive_all(LONG, 0..SIZES.len(), |part| SIZES[part])?;
    // Other processes do not end before they have the last messages of this one.
    check.losses()?;
    // The end of a transport loses no message that was sent before, also after a time-out.
    transport.timed_out();
    check.send_all(LAST, 0..SIZES.len(), |part| SIZES[part])?;
    check.receive_all(LAST, 0..SIZES.len(), |part| SIZES[part])?;
    let (recorder, others) = (check.recorder, transport.size() - 1);
    // Late duplicates have arrived by the end of the transport.
    drop(transport);
    recorder.counts(others)
}

impl Check<'_> {
    fn others(&self) -> impl Iterator<Item = usize> {
        let own = self.transport.rank();
        (0..self.transport.size()).filter(move |&rank| rank != own)
    }

    fn id(run: u64, part: usize) -> MessageId {
        MessageId { run, clique: u64::MAX, collective: 1 << 40, part: part as u64 }
    }

    /// Sends messages to all other processes, which share the bytes.
    fn send_all(&self, run: u64, parts: std::ops::Range<usize>, size: impl Fn(usize) -> usize) -> Result<()> {
        for part in parts {
            let id = Check::id(run, part);
            let bytes = Arc::new(contents(self.transport.rank(), id, size(part)));
            self.others().try_for_each(|to| self.transport.send(to, Message { id, bytes: bytes.clone() }))?;
        }
        Ok(())
    }

    /// Waits for messages of all other processes, and checks their bytes.
    fn receive_all(&self, run: u64, parts: std::ops::Range<usize>, size: impl Fn(usize) -> usize) -> Result<()> {
        for from in self.others() {
            for part in parts.clone() {
                let id = Check::id(run, part);
                let bytes = self.wait(from, id)?;
                if bytes != contents(from, id, size(part)) {
                    return Err(failure(format!(
                        "message {id:?} of process {from} has other bytes than it was sent with"
                    )));
                }
            }
        }
        Ok(())
    }

    fn wait(&self, from: usize, id: MessageId) -> Result<Vec<u8>> {
        let start = Instant::now();
        loop {
            let progress = self.transport.poll();
            let messages = self.recorder.messages.lock().unwrap();
            if let Some(found) = messages.get(&(from, id)) {
                return Ok(found[0].clone());
            }
            if let Some(error) = self.recorder.lost.lock().unwrap().get(&from) {
                return Err(error.again().context(format_args!("process {from} is lost before message {id:?}")));
            }
            if start.elapsed() > LIMIT {
                return Err(failure(format!("message {id:?} of process {from} has not arrived within {LIMIT:?}")));
            }
            if progress == Progress::Own {
                drop(self.recorder.changed.wait_timeout(messages, POLL));
            }
        }
    }

    /// Checks that a transport refuses a second receiver.
    fn second_receiver(&self) -> Result<()> {
        match self.transport.connect(Arc::new(Recorder::default())) {
            Ok(()) => Err(failure("a transport takes a second receiver".to_string())),
            Err(_) => Ok(()),
        }
    }

    /// Checks that sends to a process that does not exist fail, for messages of every size.
    fn unknown_process(&self) -> Result<()> {
        for size in SIZES {
            let message = Message { id: Check::id(SIZED, 0), bytes: Arc::new(vec![0; size]) };
            if self.transport.send(self.transport.size(), message).is_ok() {
                return Err(failure(format!("a message of {size} bytes was sent to a process that does not exist")));
            }
        }
        Ok(())
    }

    /// Sends short messages from several threads at the same time, and receives those of the other processes.
    fn short_messages(&self) -> Result<()> {
        let parts = |thread: usize| thread * SHORT_MESSAGES..(thread + 1) * SHORT_MESSAGES;
        let size = |part: usize| part % 40;
        thread::scope(|scope| {
            let send = |thread| scope.spawn(move || self.send_all(SHORT, parts(thread), size));
            let threads: Vec<_> = (0..SENDERS).map(send).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap())
        })?;
        self.receive_all(SHORT, 0..SENDERS * SHORT_MESSAGES, size)
    }

    /// Checks that no process is lost.
    fn losses(&self) -> Result<()> {
        match self.recorder.lost.lock().unwrap().first_key_value() {
            None => Ok(()),
            Some((rank, error)) => Err(error.again().context(format_args!("process {rank} is lost"))),
        }
    }

    /// Checks the texts of the locations of all processes.
    fn locations(&self) -> Result<()> {
        for rank in 0..self.transport.size() {
            let location = self.transport.location(rank);
            if !location.starts_with("pid ") {
                return Err(failure(format!("process {rank} is located at {location:?}")));
            }
        }
        Ok(())
    }
}

impl Recorder {
    /// Checks that each message of the other processes has arrived once.
    fn counts(&self, others: usize) -> Result<()> {
        let expected = others * (1 + 3 * SIZES.len() + SENDERS * SHORT_MESSAGES);
        let messages = self.messages.lock().unwrap();
        let (found, total) = (messages.len(), messages.values().map(Vec::len).sum::<usize>());
        match found == expected && total == expected {
            true => Ok(()),
            false => {
                Err(failure(format!("{expected} messages were sent, {found} different ones of {total} have arrived")))
            }
        }
    }
}
