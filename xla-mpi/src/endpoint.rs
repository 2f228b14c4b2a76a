//! Endpoint of a process: its communicator, and its pending messages.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_service::collective::processes::{Message, MessageId};

use crate::abi::Handle;
use crate::library::MpiLibrary;
use crate::operations::{Receive, Send};
use crate::wire::{self, Control, Hello};

/// Largest number of bytes of a message that is sent without an announcement.
const SHORT_BYTES: usize = 16 << 10;

/// Tag of short messages and announcements.
const CONTROL: i32 = 1;

/// Tag of announced messages. MPI keeps the order of messages of one tag between two processes, and so do
/// announcements.
const ANNOUNCED: i32 = 2;

/// Message or failure, for the inbox.
pub(crate) enum Event {
    Message(usize, MessageId, Vec<u8>),
    Lost(usize, Error),
}

/// Communicator of a process, and its pending messages.
#[derive(Debug)]
pub(crate) struct Endpoint {
    comm: Handle,
    sends: Vec<Send>,
    peers: Vec<Peer>,
}

/// Messages from another process.
#[derive(Debug, Default)]
struct Peer {
    /// Short messages and announcements, in their order.
    control: VecDeque<Receive>,
    /// Announced messages.
    announced: Vec<(MessageId, Receive)>,
    /// Introduction, once it has arrived.
    hello: Option<Hello>,
    is_lost: bool,
}

impl Endpoint {
    /// Creates an endpoint on a communicator of this number of processes.
    pub fn new(comm: Handle, size: usize) -> Endpoint {
        Endpoint { comm, sends: vec![], peers: (0..size).map(|_| Peer::default()).collect() }
    }

    /// Returns host and process id of a process, once known.
    pub fn location(&self, rank: usize) -> Option<&str> {
        Some(&self.peers.get(rank)?.hello.as_ref()?.location)
    }

    /// Sets the introduction of this process, and sends it to the others.
    pub fn introduce(&mut self, mpi: &MpiLibrary, own: usize, hello: Hello) -> Result<()> {
        let bytes = Arc::new(hello.to_bytes());
        self.peers[own].hello = Some(hello);
        (0..self.peers.len()).filter(|&rank| rank != own).try_for_each(|rank| self.begin(mpi, rank, CONTROL, &bytes))
    }

    /// Returns a process that has not introduced itself yet.
    pub fn missing(&self) -> Option<usize> {
        self.peers.iter().position(|peer| peer.hello.is_none())
    }

    /// Returns an error if another process has introduced itself with another platform than process `own`.
    pub fn check_platforms(&self, own: usize) -> Result<()> {
        let Some(own) = &self.peers[own].hello else { return Ok(()) };
        for (rank, peer) in self.peers.iter().enumerate() {
            if let Some(Hello { location, platform }) =
                peer.hello.as_ref().filter(|hello| hello.platform != own.platform)
            {
                return Err(Error::failed_precondition(format!(
                    "process {rank}, {location}, connects a client of platform {platform}, but this process connects \
                     one of platform {}",
                    own.platform
                ))
                .note("with MPI, all processes must create their clients of several platforms in the same order"));
            }
        }
        Ok(())
    }

    /// Begins to send a message.
    pub fn send(&mut self, mpi: &MpiLibrary, to: usize, message: &Message) -> Result<()> {
        if message.bytes.len() <= SHORT_BYTES {
            return self.begin(mpi, to, CONTROL, &Arc::new(wire::short(message.id, &message.bytes)));
        }
        if self.peers[to].is_lost {
            return Err(Error::failed_precondition(format!("the connection to process {to} is lost")));
        }
        self.begin(mpi, to, CONTROL, &Arc::new(wire::long(message.id, message.bytes.len())))?;
        // The receiver would take the next payload for the announced one.
        self.begin(mpi, to, ANNOUNCED, &message.bytes).inspect_err(|_| self.peers[to].is_lost = true)
    }

    fn begin(&mut self, mpi: &MpiLibrary, to: usize, tag: i32, bytes: &Arc<Vec<u8>>) -> Result<()> {
        let mut send = Send::begin(mpi, self.comm, to, tag, bytes.clone())?;
        // Most short messages are complete at once.
        if !send.test(mpi)? {
            self.sends.push(send);
        }
        Ok(())
    }

    /// Whether sends or receives are pending.
    pub fn is_busy(&self) -> bool {
        let is_busy = |peer: &Peer| !(peer.is_lost || peer.control.is_empty() && peer.announced.is_empty());
        self.has_sends() || self.peers.iter().any(is_busy)
    }

    /// Whether sends are pending.
    pub fn has_sends(&self) -> bool {
        self.sends.iter().any(|send| !self.peers[send.to].is_lost)
    }

    /// Makes progress. Returns whether anything has happened.
    pub fn progress(&mut self, mpi: &MpiLibrary, events: &mut Vec<Event>) -> bool {
        let mut has_progress = self.accept(mpi, events);
        for send in take(&mut self.sends) {
            has_progress |= self.progress_send(mpi, send, events);
        }
        for rank in 0..self.peers.len() {
            let before = events.len();
            let result = self.progress_peer(mpi, rank, events);
            has_progress |= events.len() > before || matches!(result, Ok(true));
            if let Err(error) = result {
                self.lose(rank, error, events);
            }
        }
        has_progress
    }

    /// Begins to receive short messages and announcements.
    fn accept(&mut self, mpi: &MpiLibrary, events: &mut Vec<Event>) -> bool {
        let mut has_progress = false;
        loop {
            let probed = match mpi.probe(self.comm, CONTROL) {
                Ok(Some(probed)) => probed,
                Ok(None) => return has_progress,
                Err(error) => {
                    (0..self.peers.len()).for_each(|rank| self.lose(rank, error.again(), events));
                    return true;
                }
            };
            has_progress = true;
            match Receive::begin(mpi, self.comm, probed.source, CONTROL, probed.bytes) {
                Ok(receive) => self.peers[probed.source].control.push_back(receive),
                Err(error) => {
                    self.lose(probed.source, error, events);
                    return true;
                }
            }
        }
    }

    /// Returns whether a send has ended.
    fn progress_send(&mut self, mpi: &MpiLibrary, mut send: Send, events: &mut Vec<Event>) -> bool {
        match send.test(mpi) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(error) => self.lose(send.to, error, events),
        }
        self.sends.push(send);
        false
    }

    fn progress_peer(&mut self, mpi: &MpiLibrary, rank: usize, events: &mut Vec<Event>) -> Result<bool> {
        let (comm, peer) = (self.comm, &mut self.peers[rank]);
        let mut has_progress = false;
        if peer.is_lost {
            return Ok(false);
        }
        while let Some(receive) = peer.control.front_mut()
            && let Some(bytes) = receive.test(mpi)?
        {
            peer.control.pop_front();
            has_progress = true;
            match wire::decode(bytes) {
                Some(Control::Hello(hello)) => peer.hello = Some(hello),
                Some(Control::Short(id, bytes)) => events.push(Event::Message(rank, id, bytes)),
                Some(Control::Long(id, size)) => {
                    peer.announced.push((id, Receive::begin(mpi, comm, rank, ANNOUNCED, size)?));
                }
                None => return Err(Error::internal("it sent a message of another format")),
            }
        }
        let mut i = 0;
        while let Some((id, receive)) = peer.announced.get_mut(i) {
            match receive.test(mpi)? {
                Some(bytes) => {
                    events.push(Event::Message(rank, *id, bytes));
                    peer.announced.swap_remove(i);
                }
                None => i += 1,
            }
        }
        Ok(has_progress)
    }

    fn lose(&mut self, rank: usize, error: Error, events: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.peers[rank].is_lost, true) {
            events.push(Event::Lost(rank, error));
        }
    }
}
