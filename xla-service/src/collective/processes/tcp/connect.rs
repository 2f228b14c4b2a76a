//! Connections of all processes with each other.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};

use super::peer::Peer;
use crate::client::ProcessOptions;
use crate::topology::publish;

/// Environment variable with the address at which other processes reach this one.
const VARIABLE: &str = "XLARS_TCP_ADDRESS";

/// Time between looks for new connections.
const STEP: Duration = Duration::from_millis(5);

/// Maximum time for a new connection to introduce itself.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// Published address of a process.
struct Address {
    socket: SocketAddr,
    /// Number that connections to this process must send, so that strangers are refused.
    token: u64,
    location: String,
}

/// Publishes the address of this process under a key with this prefix, and connects to all others.
pub(super) fn connect(options: &ProcessOptions, prefix: &str) -> Result<Vec<Peer>> {
    let start = Instant::now();
    let left = || options.timeout.saturating_sub(start.elapsed());
    let cannot = |error| Error::failed_precondition(format!("cannot listen for other processes: {error}"));
    let ip = own_ip()?;
    let any = if ip.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let listener = TcpListener::bind((any, 0)).map_err(cannot)?;
    let port = listener.local_addr().map_err(cannot)?.port();
    let own = Address {
        socket: SocketAddr::new(ip, port),
        token: RandomState::new().build_hasher().finish(),
        location: format!("pid {}", std::process::id()),
    };
    publish(&*options.store, &format!("{prefix}/{}", options.process), own.encode().as_bytes())?;
    let mut addresses = Vec::new();
    for rank in 0..options.processes {
        let missing = |error: Error| {
            let text = error.message();
            Error::failed_precondition(format!("process {rank} has not published its address for collectives ({text})"))
        };
        addresses.push(Address::decode(&options.store.get(&format!("{prefix}/{rank}"), left()).map_err(missing)?)?);
    }
    let mut streams: Vec<Option<TcpStream>> = addresses.iter().map(|_| None).collect();
    for (rank, address) in addresses[..options.process].iter().enumerate() {
        streams[rank] = Some(address.dial(options.process, left()).map_err(|error| {
            let Address { socket, location, .. } = address;
            Error::failed_precondition(format!(
                "cannot connect to process {rank}, {location}, at {socket}: {error}; set {VARIABLE} there to an \
                 address that this host reaches"
            ))
        })?);
    }
    accept_all(&listener, own.token, &mut streams[options.process + 1..], options.process + 1, left)?;
    let peers = addresses.into_iter().zip(streams);
    Ok(peers.map(|(address, stream)| Peer::new(address.location, stream)).collect())
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

/// Returns the address at which other processes reach this one.
fn own_ip() -> Result<IpAddr> {
    if let Ok(text) = std::env::var(VARIABLE) {
        let invalid = |_| Error::invalid_argument(format!("{VARIABLE} must be an IP address, but it is {text:?}"));
        return text.parse().map_err(invalid);
    }
    // Selects a route, but sends nothing. The address is one for documentation, which no host has.
    let route = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    });
    Ok(route.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip()))
}

impl Address {
    fn encode(&self) -> String {
        format!("{} {} {}", self.socket, self.token, self.location)
    }

    fn decode(bytes: &[u8]) -> Result<Address> {
        let parse = |text: &str| {
            let mut words = text.splitn(3, ' ');
            let (socket, token) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some(Address { socket, token, location: format!("{} at {}", words.next()?, SocketAddr::ip(&socket)) })
        };
        let address = std::str::from_utf8(bytes).ok().and_then(parse);
        address.ok_or_else(|| Error::failed_precondition("the published address of a process is malformed"))
    }

    /// Connects to the process and introduces this one.
    fn dial(&self, rank: usize, timeout: Duration) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.socket, timeout.max(STEP))?;
        stream.write_all(&[self.token.to_le_bytes(), (rank as u64).to_le_bytes()].concat())?;
        Ok(stream)
    }
}
