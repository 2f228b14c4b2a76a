//! Addresses of processes: the own one, and those that the others have published.

use std::collections::hash_map::RandomState;
use std::fmt::Display;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use xla_hlo::{Error, Result};

/// Environment variable with the address at which other processes reach this one.
const VARIABLE: &str = "XLARS_TCP_ADDRESS";

/// Addresses for documentation, which no host has. Routes to them are default routes.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Published address of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub socket: SocketAddr,
    /// Number that connections to this process must send, so that strangers are refused.
    pub token: u64,
    /// Name of the host, without blanks; empty if it is unknown.
    pub host: String,
    /// Process id, for messages.
    pub location: String,
}

/// Returns the address at which other processes reach this one: the one of the environment variable, otherwise the
/// address of the default route, of IPv4 or of IPv6. Without a route, it is the loopback address.
pub(super) fn own_ip() -> Result<IpAddr> {
    match std::env::var(VARIABLE) {
        Ok(text) => named_ip(&text),
        Err(_) => Ok(ELSEWHERE.into_iter().find_map(route_to).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))),
    }
}

/// Returns the address with this text, or of the host with this name.
fn named_ip(text: &str) -> Result<IpAddr> {
    if let Ok(ip) = text.parse() {
        return Ok(ip);
    }
    let invalid = |reason: &dyn Display| {
        Error::invalid_argument(format!(
            "{VARIABLE} must be an IP address or a host name, but it is {text:?}: {reason}"
        ))
    };
    let found: Vec<IpAddr> = (text, 0).to_socket_addrs().map_err(|error| invalid(&error))?.map(|at| at.ip()).collect();
    let preferred = found.iter().find(|ip| ip.is_ipv4()).or(found.first());
    preferred.copied().ok_or_else(|| invalid(&"it has no address"))
}

/// Returns the own address of the route to another one; `None` if there is no route. Sends nothing.
fn route_to(other: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((any_like(other), 0)).ok()?;
    socket.connect((other, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified())
}

/// Returns the address of all interfaces, of the same version.
pub(super) fn any_like(ip: IpAddr) -> IpAddr {
    if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// Returns the name of this host as one word; empty if it is unknown.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.unwrap_or_default().split_whitespace().collect()
}

impl Address {
    /// Returns the address of this process, with a new token.
    pub fn own(ip: IpAddr, port: u16) -> Address {
        Address {
            socket: SocketAddr::new(ip, port),
            token: RandomState::new().build_hasher().finish(),
            host: host_name(),
            location: format!("pid {}", std::process::id()),
        }
    }

    pub fn encode(&self) -> String {
        format!("{} {} {} {}", self.socket, self.token, self.host, self.location)
    }

    pub fn decode(bytes: &[u8]) -> Result<Address> {
        let parse = |text: &str| {
            let mut words = text.splitn(4, ' ');
            let (socket, token): (SocketAddr, _) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let (host, location) = (words.next()?.to_string(), words.next()?);
            let location = match host.as_str() {
                "" => format!("{location} at {}", socket.ip()),
                host => format!("{location} on {host}"),
            };
            Some(Address { socket, token, host, location })
        };
        let address = std::str::from_utf8(bytes).ok().and_then(parse);
        address.ok_or_else(|| Error::failed_precondition("the published address of a process is malformed"))
    }

    /// Returns an error if process `rank` is on another host than process `own`, at the loopback address: a connection
    /// would reach another process.
    pub fn check_reachable(&self, rank: usize, own: &Address) -> Result<()> {
        match self.socket.ip().is_loopback() && self.host != own.host {
            true => Err(self.unreachable(rank, &"the loopback address of another host, which has no default route")),
            false => Ok(()),
        }
    }

    /// Returns the error of a process that cannot be reached.
    pub fn unreachable(&self, rank: usize, reason: &dyn Display) -> Error {
        let Address { socket, location, .. } = self;
        Error::failed_precondition(format!(
            "cannot connect to process {rank}, {location}, at {socket}: {reason}; set {VARIABLE} there to an address \
             or a host name that this host reaches"
        ))
    }

    /// Connects to the process and introduces this one.
    pub fn dial(&self, rank: usize, timeout: Duration) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.socket, timeout)?;
        stream.write_all(&[self.token.to_le_bytes(), (rank as u64).to_le_bytes()].concat())?;
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(ip: &str, host: &str) -> Address {
        Address { host: host.to_string(), ..Address::own(ip.parse().unwrap(), 4242) }
    }

    #[test]
    fn published_addresses_are_read_back() {
        for (ip, host, place) in [("10.0.0.7", "node07", "on node07"), ("fd00::7", "", "at fd00::7")] {
            let own = address(ip, host);
            let location = format!("{} {place}", own.location);
            assert_eq!(Address::decode(own.encode().as_bytes()).unwrap(), Address { location, ..own });
        }
        for malformed in [&b"10.0.0.7:1 2"[..], b"node07:1 2 node07 pid 3", b"\xff"] {
            let message = Address::decode(malformed).unwrap_err().to_string();
            assert_eq!(message, "the published address of a process is malformed");
        }
    }

    #[test]
    fn loopback_addresses_of_other_hosts_are_errors() {
        let own = address("127.0.0.1", "node01");
        assert!(own.check_reachable(0, &own).is_ok());
        assert!(address("10.0.0.7", "node07").check_reachable(0, &own).is_ok());
        for ip in ["127.0.0.1", "::1"] {
            let message = address(ip, "node07").check_reachable(3, &own).unwrap_err().to_string();
            assert!(message.starts_with("cannot connect to process 3, pid "), "{message}");
            assert!(message.contains("set XLARS_TCP_ADDRESS there"), "{message}");
        }
    }

    #[test]
    fn host_names_and_addresses_name_a_process() {
        assert_eq!(named_ip("10.0.0.7").unwrap(), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)));
        assert_eq!(named_ip("fd00::7").unwrap().to_string(), "fd00::7");
        assert!(named_ip("localhost").unwrap().is_loopback());
        let message = named_ip("no host").unwrap_err().to_string();
        assert!(message.starts_with("XLARS_TCP_ADDRESS must be an IP address or a host name"), "{message}");
    }
}
