//! Several engines as processes, and execution of a collective by all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use xla_hlo::Result;
use xla_service::collective::processes::Processes;
use xla_service::collective::{CollectiveEngine, CollectiveSpec, RunKey, Timeouts};

use super::lossy::Lossy;
use crate::support::{Member, Random, execute_member, key, on_threads};

/// Processes with some devices each.
pub struct Cluster {
    pub engines: Vec<Arc<Processes>>,
    pub endpoints: Vec<Arc<Lossy>>,
    /// Process of each device.
    pub placement: Vec<usize>,
    is_over: Arc<AtomicBool>,
    network: Option<JoinHandle<()>>,
}

impl Cluster {
    /// Creates the processes of devices 0, 1, ..., each in this process.
    pub fn new(placement: Vec<usize>, timeouts: Timeouts, random: &mut Random) -> Cluster {
        let size = placement.iter().max().unwrap() + 1;
        let endpoints = Lossy::network(size, random);
        let engine = |endpoint: &Arc<Lossy>| {
            let processes = placement.iter().copied().enumerate().collect();
            Arc::new(Processes::new(endpoint.clone(), processes, timeouts).unwrap())
        };
        let engines = endpoints.iter().map(engine).collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let (senders, stop) = (endpoints.clone(), is_over.clone());
        let network = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                senders.iter().for_each(|endpoint| {
                    endpoint.flush_one();
                });
                thread::yield_now();
            }
        });
        Cluster { engines, endpoints, placement, is_over, network: Some(network) }
    }

    /// Distributes devices to up to four processes with up to three devices each, in any order.
    pub fn random(devices: usize, random: &mut Random) -> Cluster {
        let size = (devices.div_ceil(3)..=devices.min(4)).nth(random.below(2)).unwrap_or(devices.div_ceil(3));
        let order = random.order(devices);
        let placement = order.into_iter().map(|place| place % size).collect();
        Cluster::new(placement, Timeouts::default(), random)
    }

    /// Returns the engine of a device.
    pub fn engine(&self, device: usize) -> &dyn CollectiveEngine {
        &*self.engines[self.placement[device]]
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.network.take().unwrap().join().unwrap();
    }
}

/// Executes a collective among devices of several processes, in a random order of ranks. Returns the results by rank.
pub fn execute(spec: &Arc<CollectiveSpec>, members: &[Member], random: &mut Random) -> Result<Vec<Vec<Vec<u8>>>> {
    let cluster = Cluster::random(members.len(), random);
    let devices = random.order(members.len());
    let run = RunKey::next();
    let results = on_threads(members.len(), |rank| {
        execute_member(cluster.engine(devices[rank]), &key(run, &devices), rank, spec, &members[rank])
    });
    cluster.engines.iter().for_each(|engine| engine.finish(run));
    results.into_iter().collect()
}
