//! Transport among engines of one process, for tests and simulations.

use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::{Error, Result};

use super::transport::{Inbox, Message, MessageId, Transport};

/// Endpoint of a network in the memory of one process.
#[derive(Debug)]
pub struct InMemory {
    rank: usize,
    network: Arc<Vec<Mutex<Endpoint>>>,
}

/// Receiver of a rank, or the messages until there is one.
#[derive(Debug)]
enum Endpoint {
    Waiting(Vec<(usize, MessageId, Vec<u8>)>),
    Connected(Arc<dyn Inbox>),
}

impl InMemory {
    /// Creates a network. Returns the endpoint of each rank.
    pub fn network(size: usize) -> Vec<InMemory> {
        let network = Arc::new((0..size).map(|_| Mutex::new(Endpoint::Waiting(vec![]))).collect());
        (0..size).map(|rank| InMemory { rank, network: Arc::clone(&network) }).collect()
    }
}

impl Transport for InMemory {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.network.len()
    }

    fn location(&self, _: usize) -> String {
        format!("pid {} on this host", std::process::id())
    }

    fn connect(&self, inbox: Arc<dyn Inbox>) -> Result<()> {
        let mut endpoint = self.network[self.rank].lock().unwrap_or_else(PoisonError::into_inner);
        let Endpoint::Waiting(messages) = &mut *endpoint else {
            return Err(Error::failed_precondition("a transport has two engines"));
        };
        let early = std::mem::take(messages);
        *endpoint = Endpoint::Connected(inbox.clone());
        drop(endpoint);
        early.into_iter().for_each(|(from, id, bytes)| inbox.receive(from, id, bytes));
        Ok(())
    }

    fn send(&self, to: usize, message: Message) -> Result<()> {
        let endpoint = self.network.get(to).ok_or_else(|| Error::internal(format!("there is no process {to}")))?;
        let mut endpoint = endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = message.bytes.to_vec();
        match &mut *endpoint {
            Endpoint::Waiting(messages) => messages.push((self.rank, message.id, bytes)),
            Endpoint::Connected(inbox) => {
                let inbox = inbox.clone();
                drop(endpoint);
                inbox.receive(self.rank, message.id, bytes);
            }
        }
        Ok(())
    }
}
