//! Connections of all processes with each other.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};

use super::address::{self, Address};
use super::peer::Peer;
use crate::client::ProcessOptions;
use crate::topology::publish;

/// Polling interval of new connections.
const STEP: Duration = Duration::from_millis(5);

/// Maximum time for a new connection to introduce itself.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// Publishes the address of this process under a key with this prefix, and connects to all others. The lock is held
/// while the client is numbered.
pub(super) fn connect(options: &ProcessOptions, prefix: &str, numbering: &Mutex<()>) -> Result<Vec<Peer>> {
    let start = Instant::now();
    let left = || options.timeout.saturating_sub(start.elapsed());
    let cannot = |error| Error::failed_precondition(format!("cannot listen for other processes: {error}"));
    let ip = address::own_ip()?;
    let listener = TcpListener::bind((address::any_like(ip), 0)).map_err(cannot)?;
    let own = Address::own(ip, listener.local_addr().map_err(cannot)?.port());
    let prefix = publish_own(options, prefix, &own, numbering)?;
    let mut addresses = Vec::new();
    for rank in 0..options.processes {
        let missing = |error: Error| {
            let text = error.message();
            Error::failed_precondition(format!("process {rank} has not published its address for collectives ({text})"))
        };
        addresses.push(Address::decode(&options.store.get(&format!("{prefix}/{rank}"), left()).map_err(missing)?)?);
    }
    addresses.iter().enumerate().try_for_each(|(rank, address)| address.check_reachable(rank, &own))?;
    let mut streams: Vec<Option<TcpStream>> = addresses.iter().map(|_| None).collect();
    for (rank, address) in addresses[..options.process].iter().enumerate() {
        let timeout = left().max(STEP);
        streams[rank] =
            Some(address.dial(options.process, timeout).map_err(|error| address.unreachable(rank, &error))?);
    }
    accept_all(&listener, own.token, &mut streams[options.process + 1..], options.process + 1, left)?;
    let peers = addresses.into_iter().zip(streams);
    Ok(peers.map(|(address, stream)| Peer::new(address.location, stream)).collect())
}

/// Publishes the address of this process for its next client. Returns the prefix of the addresses of this client.
fn publish_own(options: &ProcessOptions, prefix: &str, own: &Address, numbering: &Mutex<()>) -> Result<String> {
    let _numbering = numbering.lock().unwrap_or_else(PoisonError::into_inner);
    let mut number = 0_u64;
    loop {
        let prefix = format!("{prefix}/{number}");
        let key = format!("{prefix}/{}", options.process);
        if options.store.try_get(&key)?.is_none() {
            publish(&*options.store, &key, own.encode().as_bytes())?;
            return Ok(prefix);
        }
        number += 1;
    }
}

/// Accepts a connection from each process; `streams` begins with that of rank `first`.
fn accept_all(
    listener: &TcpListener,
    token: u64,
    streams: &mut [Option<TcpStream>],
    first: usize,
    left: impl Fn() -> Duration,
) -> Result<()> {
    let cannot = |error| Error::failed_precondition(format!("cannot accept other processes: {error}"));
    listener.set_nonblocking(true).map_err(cannot)?;
    while streams.iter().any(Option::is_none) {
        if left().is_zero() {
            let missing = streams.iter().enumerate().filter(|(_, stream)| stream.is_none());
            let missing: Vec<_> = missing.map(|(i, _)| (first + i).to_string()).collect();
            let missing = missing.join(", ");
            return Err(Error::failed_precondition(format!("these processes have not connected in time: {missing}")));
        }
        match listener.accept() {
            Ok((stream, _)) => {
                // A stranger, or a process that has died meanwhile.
                let Ok((sent, rank)) = introduction(&stream, left().min(INTRODUCTION)) else { continue };
                if let Some(place) = rank.checked_sub(first).and_then(|i| streams.get_mut(i)).filter(|_| sent == token)
                {
                    *place = Some(stream);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(STEP),
            // A connection that its sender has ended.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
            Err(error) => return Err(cannot(error)),
        }
    }
    Ok(())
}

/// Reads token and rank of a new connection.
fn introduction(mut stream: &TcpStream, timeout: Duration) -> std::io::Result<(u64, usize)> {
    stream.set_nonblocking(false)?;
    let start = Instant::now();
    let (mut bytes, mut count) = ([0; 16], 0);
    while count < bytes.len() {
        // The time-out of a socket is one of each read.
        let left = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero()).ok_or(ErrorKind::TimedOut)?;
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[count..])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => count += read,
        }
    }
    stream.set_read_timeout(None)?;
    let [token, rank] = [0, 8].map(|at| std::array::from_fn(|i| bytes[at + i]));
    Ok((u64::from_le_bytes(token), usize::try_from(u64::from_le_bytes(rank)).unwrap_or(usize::MAX)))
}
