//! Transports keep their contract. A transport that needs a launcher runs the same check in a program of its own.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use xla_service::collective::processes::{InMemory, Tcp, Transport};
use xla_service::topology::InMemoryStore;
use xla_service::{Connector, ProcessOptions};

use crate::contract::check;
use crate::support::on_threads;

const PROCESSES: usize = 3;

/// Checks transports that `connect` creates for each rank.
fn check_all(connect: impl Fn(usize) -> Arc<dyn Transport> + Sync) {
    let barrier = Barrier::new(PROCESSES);
    let results = on_threads(PROCESSES, |rank| {
        let transport = connect(rank);
        assert_eq!((transport.rank(), transport.size()), (rank, PROCESSES));
        check(transport, &|| {
            barrier.wait();
        })
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn messages_in_memory_keep_the_contract() {
    let endpoints: Vec<Arc<InMemory>> = InMemory::network(PROCESSES).into_iter().map(Arc::new).collect();
    check_all(|rank| endpoints[rank].clone());
}

#[test]
fn messages_by_tcp_keep_the_contract() {
    let store = Arc::new(InMemoryStore::default());
    check_all(|process| {
        let connector = Arc::new(Tcp::default());
        let options = ProcessOptions {
            process,
            processes: PROCESSES,
            store: store.clone(),
            connector: connector.clone(),
            timeout: Duration::from_secs(60),
            collective_timeouts: ProcessOptions::COLLECTIVE_TIMEOUTS,
        };
        connector.connect("cpu", &options).unwrap()
    });
}
