//! Connection to one process.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use xla_hlo::{Error, Result};

use crate::collective::processes::transport::{Inbox, Message, MessageId};

/// Time without progress of a write after which a process counts as lost.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Capacity that is allocated before the bytes of a message arrive.
const FIRST_BYTES: usize = 1 << 20;

/// Bytes of a frame ahead of the message: identity and length.
const HEAD_BYTES: usize = MessageId::BYTES + 8;

/// Connection to a process; without a stream for the own process.
#[derive(Debug)]
pub(super) struct Peer {
    /// Process id and host.
    pub location: String,
    stream: Option<TcpStream>,
    /// Messages for the thread that writes, and their receiver until it starts.
    queue: Option<Sender<Message>>,
    unstarted: Mutex<Option<Receiver<Message>>>,
    /// Thread that writes, once it has started.
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Peer {
    pub fn new(location: String, stream: Option<TcpStream>) -> Peer {
        let (queue, receiver) = mpsc::channel();
        Peer { location, stream, queue: Some(queue), unstarted: Mutex::new(Some(receiver)), writer: Mutex::default() }
    }

    /// Starts the threads that write and read.
    pub fn start(&self, rank: usize, inbox: &Arc<dyn Inbox>) -> Result<()> {
        let Some(stream) = &self.stream else { return Ok(()) };
        let queue = self.unstarted.lock().unwrap_or_else(PoisonError::into_inner).take();
        let queue = queue.ok_or_else(|| Error::failed_precondition("a transport has two engines"))?;
        let cannot =
            |error| Error::failed_precondition(format!("cannot use the connection to process {rank}: {error}"));
        stream.set_nodelay(true).and_then(|()| stream.set_write_timeout(Some(WRITE_TIMEOUT))).map_err(cannot)?;
        let (reader, writer) = (stream.try_clone().map_err(cannot)?, stream.try_clone().map_err(cannot)?);
        let location = self.location.clone();
        let lost = move |error: io::Error| {
            let reason = match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => "it has ended".to_string(),
                _ => error.to_string(),
            };
            Error::internal(format!("the connection to process {rank}, {location}, is lost: {reason}"))
        };
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(format!("xla-tcp-{name}-{rank}"));
            thread.spawn(work).map_err(cannot)
        };
        let (inbox_of_writer, lost_of_writer) = (inbox.clone(), lost.clone());
        let writer = spawn(
            "write",
            Box::new(move || {
                if let Err(error) = write(&writer, &queue) {
                    inbox_of_writer.lost(rank, lost_of_writer(error));
                }
                // The process sees the end after all messages.
                drop(writer.shutdown(Shutdown::Write));
            }),
        )?;
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        let inbox = inbox.clone();
        spawn(
            "read",
            Box::new(move || {
                let error = read(reader, |id, bytes| inbox.receive(rank, id, bytes));
                inbox.lost(rank, lost(error));
            }),
        )?;
        Ok(())
    }

    /// Queues a message.
    pub fn send(&self, rank: usize, message: Message) -> Result<()> {
        let lost = |_| Error::internal(format!("the connection to process {rank}, {}, is lost", self.location));
        self.queue.as_ref().map_or(Ok(()), |queue| queue.send(message)).map_err(lost)
    }
}

impl Peer {
    /// Ends the thread that writes, after all messages.
    pub fn close(&mut self) {
        self.queue = None;
    }
}

impl Drop for Peer {
    /// Waits until all messages are written, which takes at most [`WRITE_TIMEOUT`] without progress, and ends the
    /// thread that reads.
    fn drop(&mut self) {
        self.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer.filter(|writer| writer.thread().id() != thread::current().id()) {
            // A panic of the thread has been reported.
            let _ = writer.join();
        }
        if let Some(stream) = &self.stream {
            // Fails if the connection has ended.
            let _ = stream.shutdown(Shutdown::Read);
        }
    }
}

/// Writes messages until the transport is dropped.
fn write(mut stream: &TcpStream, queue: &Receiver<Message>) -> io::Result<()> {
    while let Ok(Message { id, bytes }) = queue.recv() {
        let mut head = [0; HEAD_BYTES];
        head[..MessageId::BYTES].copy_from_slice(&id.to_bytes());
        head[MessageId::BYTES..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        if bytes.len() <= FIRST_BYTES {
            // One segment for short messages.
            stream.write_all(&[&head[..], &bytes].concat())?;
        } else {
            stream.write_all(&head)?;
            stream.write_all(&bytes)?;
        }
    }
    Ok(())
}

/// Reads messages until the connection ends; returns its error.
fn read(mut stream: TcpStream, mut receive: impl FnMut(MessageId, Vec<u8>)) -> io::Error {
    let mut next = || -> io::Result<(MessageId, Vec<u8>)> {
        let (mut id, mut length) = ([0; MessageId::BYTES], [0; 8]);
        stream.read_exact(&mut id)?;
        stream.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        // Memory grows with the bytes that arrive, whatever length a damaged message has.
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(FIRST_BYTES).min(FIRST_BYTES));
        if (&mut stream).take(length).read_to_end(&mut bytes)? as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((MessageId::from_bytes(&id), bytes))
    };
    loop {
        match next() {
            Ok((id, bytes)) => receive(id, bytes),
            Err(error) => return error,
        }
    }
}
