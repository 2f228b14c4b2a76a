//! TCP as a transport: needs no launcher and no library, only a key-value store for the addresses.
//!
//! ```text
//! address.rs    own address, published addresses
//! connect.rs    publish the own address, connect to all lower ranks, accept all higher ranks
//! peer.rs       one connection to each process: a thread that writes a queue of messages, a thread that reads
//! ```

mod address;
mod connect;
mod peer;

use std::sync::{Arc, Mutex};

use xla_hlo::{Error, Result};

use super::transport::{Inbox, Message, Transport};
use crate::client::{Connector, ProcessOptions};
use peer::Peer;

/// Connects processes by TCP, each with each. The processes publish their addresses in the key-value store.
///
/// Other hosts connect to the address of the network interface of the default route, unless the environment variable
/// `XLARS_TCP_ADDRESS` has another address or a host name.
#[derive(Debug, Default)]
pub struct Tcp {
    /// Held while a client of this process is numbered: its number is the first without a published address of this
    /// process. Clients of one platform are created in one order in all processes.
    numbering: Mutex<()>,
}

impl Connector for Tcp {
    fn connect(&self, platform: &str, options: &ProcessOptions) -> Result<Arc<dyn Transport>> {
        let peers = connect::connect(options, &format!("xlars/{platform}/tcp"), &self.numbering)?;
        Ok(Arc::new(TcpTransport { rank: options.process, peers }))
    }
}

/// Connections of a process to all others.
#[derive(Debug)]
struct TcpTransport {
    rank: usize,
    /// Connections by rank; the own entry has none.
    peers: Vec<Peer>,
}

impl Drop for TcpTransport {
    /// Ends all threads that write before the connections wait for theirs.
    fn drop(&mut self) {
        self.peers.iter_mut().for_each(Peer::close);
    }
}

impl Transport for TcpTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.peers.len()
    }

    fn location(&self, rank: usize) -> String {
        self.peers.get(rank).map_or_else(|| "unknown".to_string(), |peer| peer.location.clone())
    }

    fn connect(&self, inbox: Arc<dyn Inbox>) -> Result<()> {
        self.peers.iter().enumerate().try_for_each(|(rank, peer)| peer.start(rank, &inbox))
    }

    fn send(&self, to: usize, message: Message) -> Result<()> {
        let peer = self.peers.get(to);
        peer.ok_or_else(|| Error::internal(format!("there is no process {to}")))?.send(to, message)
    }
}
