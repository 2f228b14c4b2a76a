//! Traits between the engine and a transport: messages of bytes among processes.

use std::fmt;
use std::sync::Arc;

use xla_hlo::{Error, Result};

/// Sends messages among processes of a job, which are numbered by rank.
///
/// # Contract
///
/// - A message that [`Transport::send`] accepts is passed to the receiver's [`Inbox`] once, complete and unchanged, or
///   both processes lose each other ([`Inbox::lost`]). Messages may overtake each other.
/// - Before [`Transport::connect`], received messages are kept.
/// - All methods may be called from any thread. No lock is held while a method of the inbox runs, so it may send.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Returns the rank of this process.
    fn rank(&self) -> usize;

    /// Returns the number of processes.
    fn size(&self) -> usize;

    /// Returns the host and the process id of a rank, for messages: `pid 4242 on node07`.
    fn location(&self, rank: usize) -> String;

    /// Sets the receiver of messages. Called once, by the engine. The transport holds it weakly or drops it when the
    /// engine drops the transport.
    fn connect(&self, inbox: Arc<dyn Inbox>) -> Result<()>;

    /// Sends a message to another process, and returns without waiting for the receiver. Fails if the process is lost.
    fn send(&self, to: usize, message: Message) -> Result<()>;

    /// Records that a wait for a process has timed out: the process may be stuck. When this process exits, it then
    /// waits for no other process without limit. Messages that were sent before are still delivered.
    fn timed_out(&self) {}

    /// Makes progress on the calling thread, for transports whose operations advance only in calls. Waiting threads
    /// call it repeatedly. Returns [`Progress::Own`] if the transport has its own threads for this.
    fn poll(&self) -> Progress {
        Progress::Own
    }
}

/// Result of [`Transport::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The transport's own threads call the inbox, so the calling thread may sleep until they do.
    Own,
    /// Nothing has happened, or another thread polls. The calling thread should poll again.
    Idle,
    /// A message was sent or received.
    Made,
}

/// Receiver of a transport's messages: the engine.
pub trait Inbox: fmt::Debug + Send + Sync {
    /// Receives a message from a process.
    fn receive(&self, from: usize, id: MessageId, bytes: Vec<u8>);

    /// Records that a process can neither send nor receive any more. Collectives that need it fail with this error.
    fn lost(&self, rank: usize, error: Error);
}

/// A message. Clones share the bytes, so one array can be sent to several processes.
#[derive(Clone, Debug)]
pub struct Message {
    /// Identity.
    pub id: MessageId,
    /// Contents.
    pub bytes: Arc<Vec<u8>>,
}

/// Identity of a message between two processes. Transports pass it on without a look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId {
    /// Key of the run.
    pub run: u64,
    /// Hash of the clique: its instruction and devices.
    pub clique: u64,
    /// Number of the collective within the clique.
    pub collective: u64,
    /// Number of the message within the collective.
    pub part: u64,
}

impl MessageId {
    /// Number of bytes of [`MessageId::to_bytes`].
    pub const BYTES: usize = 32;

    /// Returns the identity as bytes, for transports that send it ahead of the contents.
    pub fn to_bytes(self) -> [u8; MessageId::BYTES] {
        let mut bytes = [0; MessageId::BYTES];
        let (places, _) = bytes.as_chunks_mut::<8>();
        let numbers = [self.run, self.clique, self.collective, self.part];
        places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number.to_le_bytes());
        bytes
    }

    /// Returns the identity with these bytes.
    pub fn from_bytes(bytes: &[u8; MessageId::BYTES]) -> MessageId {
        let (numbers, _) = bytes.as_chunks::<8>();
        let number = |i: usize| u64::from_le_bytes(numbers[i]);
        MessageId { run: number(0), clique: number(1), collective: number(2), part: number(3) }
    }
}
