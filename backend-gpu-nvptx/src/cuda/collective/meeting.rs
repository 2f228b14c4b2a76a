//! Meetings: members of a group hand their calls to the one that sends them.

use std::sync::{Arc, Mutex, OnceLock};

use xla_hlo::{Error, Result};
use xla_service::collective::{InstructionKey, RunKey};

use super::communicators::{Call, Communicators};
use super::lock::lock;
use crate::cuda::context::Context;
use crate::cuda::memory::CudaMemory;
use crate::cuda::stream::queue::Queue;

/// Identity of a meeting. Members leave it before they arrive again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct MeetingKey {
    pub run: RunKey,
    pub instruction: Arc<InstructionKey>,
    /// Members by rank, as ids in the program.
    pub devices: Arc<[usize]>,
}

/// Calls of a member for its stream.
#[derive(Debug)]
pub(super) struct Request {
    pub queue: Arc<Queue>,
    pub calls: Vec<Call>,
    /// Memory of the calls. It is kept until they are in the stream, also if the member is cancelled before.
    pub memory: Vec<CudaMemory>,
}

/// Requests of the members, and their clique.
#[derive(Debug)]
pub(super) struct Meeting {
    /// Requests by rank; empty once they are taken.
    requests: Mutex<Vec<Option<Request>>>,
    clique: OnceLock<Result<Arc<Communicators>>>,
}

impl Meeting {
    pub fn new(members: usize) -> Meeting {
        Meeting { requests: Mutex::new((0..members).map(|_| None).collect()), clique: OnceLock::new() }
    }

    /// Adds the request of a member.
    pub fn add(&self, rank: usize, request: Request) -> Result<()> {
        match lock(&self.requests).get_mut(rank) {
            Some(place @ None) => {
                *place = Some(request);
                Ok(())
            }
            _ => Err(Error::internal(format!("rank {rank} arrived twice"))),
        }
    }

    /// Returns the clique, after all members have arrived. The first caller creates it if necessary, and the others
    /// wait for it here. NCCL may need longer for it than members wait for each other.
    pub fn clique(
        &self,
        find: impl FnOnce(Vec<Arc<Context>>) -> Result<Arc<Communicators>>,
    ) -> Result<Arc<Communicators>> {
        let find = || {
            let contexts =
                lock(&self.requests).iter().flatten().map(|request| request.queue.context().clone()).collect();
            find(contexts)
        };
        self.clique.get_or_init(find).as_ref().map(Arc::clone).map_err(Error::again)
    }

    /// Takes the requests, by rank. `None` if a member is missing.
    pub fn take(&self) -> Option<Vec<Request>> {
        let requests = std::mem::take(&mut *lock(&self.requests));
        requests.into_iter().collect()
    }
}
