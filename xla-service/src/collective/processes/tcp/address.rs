//! Addresses at which processes reach each other, and their form in the key-value store.

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
    /// Identity of the network namespace, without blanks; empty if it is unknown. Processes in one namespace reach each
    /// other at the loopback address.
    pub network: String,
    /// Name of the host, without blanks, for messages; empty if it is unknown.
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
    let invalid = |reason: &dyn Display| {
        Error::invalid_argument(format!(
            "{VARIABLE} must be an IP address or a host name, but it is {text:?}: {reason}"
        ))
    };
    let found: Vec<IpAddr> = match text.parse() {
        Ok(ip) => vec![ip],
        Err(_) => (text, 0).to_socket_addrs().map_err(|error| invalid(&error))?.map(|at| at.ip()).collect(),
    };
    preferred(&found).ok_or_else(|| match found.first().and_then(|&ip| unusable(ip)) {
        Some(reason) => invalid(&reason),
        None => invalid(&"it has no address"),
    })
}

/// Returns the address that most hosts reach: not loopback, and of IPv4, if there is one. A host's own name is often
/// mapped to a loopback address.
fn preferred(found: &[IpAddr]) -> Option<IpAddr> {
    let usable = found.iter().copied().filter(|&ip| unusable(ip).is_none());
    usable.min_by_key(|ip| (ip.is_loopback(), ip.is_ipv6()))
}

/// Returns the reason why other processes cannot connect to an address; `None` if they may.
fn unusable(ip: IpAddr) -> Option<&'static str> {
    match ip {
        _ if ip.is_unspecified() => Some("an unspecified address names no host"),
        _ if ip.is_multicast() => Some("a multicast address names no host"),
        IpAddr::V6(ip) if ip.is_unicast_link_local() => Some("a link-local address is incomplete without an interface"),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

/// Returns the own address of the route to another one; `None` if there is no route. Sends nothing.
fn route_to(other: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((any_like(other), 0)).ok()?;
    socket.connect((other, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|&ip| unusable(ip).is_none())
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

/// Returns the identity of the network namespace of this process: the boot of the kernel, and the number of the
/// namespace. Empty if it is unknown.
fn network() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = std::fs::read_link("/proc/self/ns/net");
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{boot}/{}", namespace.display()).split_whitespace().collect(),
        _ => String::new(),
    }
}

impl Address {
    /// Returns the address of this process, with a new token.
    pub fn own(ip: IpAddr, port: u16) -> Address {
        Address {
            socket: SocketAddr::new(ip, port),
            token: RandomState::new().build_hasher().finish(),
            network: network(),
            host: host_name(),
            location: format!("pid {}", std::process::id()),
        }
    }

    pub fn encode(&self) -> String {
        format!("{} {} {} {} {}", self.socket, self.token, self.network, self.host, self.location)
    }

    pub fn decode(bytes: &[u8]) -> Result<Address> {
        let parse = |text: &str| {
            let mut words = text.splitn(5, ' ');
            let (socket, token): (SocketAddr, _) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let (network, host) = (words.next()?.to_string(), words.next()?.to_string());
            let location = words.next()?;
            let location = match host.as_str() {
                "" => format!("{location} at {}", socket.ip()),
                host => format!("{location} on {host}"),
            };
            Some(Address { socket, token, network, host, location })
        };
        let address = std::str::from_utf8(bytes).ok().and_then(parse);
        address.ok_or_else(|| Error::failed_precondition("the published address of a process is malformed"))
    }

    /// Returns an error if one of process `rank` and this process is at a loopback address, but they are in different
    /// network namespaces: a connection would reach another process.
    pub fn check_reachable(&self, rank: usize, own: &Address) -> Result<()> {
        if self.network == own.network || self.network.is_empty() || own.network.is_empty() {
            return Ok(());
        }
        if own.socket.ip().is_loopback() {
            let Address { location, .. } = self;
            let reason = match std::env::var(VARIABLE) {
                Ok(text) => format!("{VARIABLE} is {text:?}"),
                Err(_) => "this host has no default route".to_string(),
            };
            return Err(Error::failed_precondition(format!(
                "process {rank}, {location}, cannot connect to this process at {}, a loopback address, because \
                 {reason}; set {VARIABLE} to an address or a host name that other hosts reach",
                own.socket.ip()
            )));
        }
        match self.socket.ip().is_loopback() {
            true => Err(self.unreachable(rank, &"a loopback address of another host or container")),
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

    /// Returns the address of a process on a host, which is a network namespace.
    fn address(ip: &str, host: &str) -> Address {
        let network = host.to_string();
        Address { network, host: host.to_string(), ..Address::own(ip.parse().unwrap(), 4242) }
    }

    #[test]
    fn published_addresses_are_read_back() {
        for (ip, host, place) in [("10.0.0.7", "node07", "on node07"), ("fd00::7", "", "at fd00::7")] {
            let own = address(ip, host);
            let location = format!("{} {place}", own.location);
            assert_eq!(Address::decode(own.encode().as_bytes()).unwrap(), Address { location, ..own });
        }
        for malformed in [&b"10.0.0.7:1 2 1/2"[..], b"node07:1 2 1/2 node07 pid 3", b"\xff"] {
            let message = Address::decode(malformed).unwrap_err().to_string();
            assert_eq!(message, "the published address of a process is malformed");
        }
    }

    #[test]
    fn loopback_addresses_of_other_namespaces_are_errors() {
        let own = address("10.0.0.1", "node01");
        assert!(address("10.0.0.7", "node07").check_reachable(0, &own).is_ok());
        for ip in ["127.0.0.1", "::1"] {
            let other = address(ip, "node07");
            let message = other.check_reachable(3, &own).unwrap_err().to_string();
            assert!(message.starts_with("cannot connect to process 3, pid "), "{message}");
            assert!(message.contains("set XLARS_TCP_ADDRESS there"), "{message}");
            let message = own.check_reachable(2, &other).unwrap_err().to_string();
            let start = format!("process 2, {}, cannot connect to this process at {ip}, a loopback", own.location);
            assert!(message.starts_with(&start), "{message}");
            // Containers may have different names in one namespace, and hosts may share a name.
            let renamed = Address { host: "container".to_string(), ..other.clone() };
            assert!(renamed.check_reachable(3, &other).is_ok());
            let homonym = Address { network: "node08".to_string(), ..other.clone() };
            assert!(homonym.check_reachable(3, &own).is_err() && homonym.check_reachable(3, &other).is_err());
            let unknown = Address { network: String::new(), ..other };
            assert!(unknown.check_reachable(3, &own).is_ok() && own.check_reachable(3, &unknown).is_ok());
        }
    }

    #[test]
    fn host_names_and_addresses_name_a_process() {
        assert_eq!(named_ip("10.0.0.7").unwrap(), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)));
        assert_eq!(named_ip("fd00::7").unwrap().to_string(), "fd00::7");
        assert!(named_ip("localhost").unwrap().is_loopback());
        for (invalid, reason) in [
            ("no host", ""),
            ("0.0.0.0", "an unspecified address names no host"),
            ("::", "an unspecified address names no host"),
            ("224.0.0.1", "a multicast address names no host"),
            ("ff02::1", "a multicast address names no host"),
            ("fe80::1", "a link-local address is incomplete without an interface"),
        ] {
            let message = named_ip(invalid).unwrap_err().to_string();
            assert!(message.starts_with("XLARS_TCP_ADDRESS must be an IP address or a host name"), "{message}");
            assert!(message.ends_with(reason), "{message}");
        }
    }

    #[test]
    fn addresses_that_other_hosts_reach_are_preferred() {
        for (found, chosen) in [
            (&["127.0.1.1", "10.0.0.7"][..], Some("10.0.0.7")),
            (&["127.0.1.1", "fe80::1", "fd00::7"], Some("fd00::7")),
            (&["fd00::7", "10.0.0.7", "10.0.0.8"], Some("10.0.0.7")),
            (&["::1", "127.0.1.1"], Some("127.0.1.1")),
            (&["fe80::1", "0.0.0.0"], None),
            (&[], None),
        ] {
            let found: Vec<IpAddr> = found.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(preferred(&found).map(|ip| ip.to_string()).as_deref(), chosen);
        }
    }
}
