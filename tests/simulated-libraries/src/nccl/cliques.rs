//! Cliques of communicators: unique ids, members, and checks of calls.

use std::collections::{BTreeMap, HashMap};
use std::thread::ThreadId;

use simulated_gpu::libraries::{device_of_memory, device_of_stream, enqueue_gated};

use super::exchange::{Collective, Kind, Range, Shared, Step};
use super::options::Failure;
use super::{Nccl, Status};
use crate::arguments::overlaps;
use crate::handles::Handles;
use crate::refusal::wrong;

/// All cliques and communicators of the process.
#[derive(Debug)]
pub(super) struct State {
    issued: u64,
    cliques: BTreeMap<u64, Clique>,
    communicators: Handles<Communicator>,
}

/// Communicators that were created with one unique id.
#[derive(Debug)]
struct Clique {
    /// Device and thread of each member that has joined.
    members: Vec<Option<(usize, ThreadId)>>,
    exchange: Shared,
    /// Whether the group in which members joined has failed.
    has_failed: bool,
    /// Collectives that some members have called, and how many.
    calls: HashMap<u64, (Collective, usize)>,
}

/// Communicator of one member.
#[derive(Debug)]
struct Communicator {
    clique: u64,
    rank: usize,
    device: usize,
    async_error: Status,
    collectives: u64,
    sent: HashMap<usize, u64>,
    received: HashMap<usize, u64>,
}

/// Checked call that is not submitted yet.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub communicator: u64,
    pub stream: u64,
    pub call: Call,
    pub failure: Option<Failure>,
}

/// Arguments of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Collective(Collective, Range, Range),
    Send { peer: usize, from: Range },
    Receive { peer: usize, to: Range },
}

impl State {
    pub const fn new() -> State {
        State { issued: 0, cliques: BTreeMap::new(), communicators: Handles::new("a communicator", 7) }
    }

    /// Returns the number of a new unique id.
    pub fn issue(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    /// Adds a member to the clique of an id; returns its communicator.
    pub fn join(&mut self, id: u64, members: usize, rank: usize, device: Option<usize>) -> Nccl<u64> {
        if id == 0 || id > self.issued {
            return wrong(Status::INVALID_ARGUMENT, "the unique id is not one of ncclGetUniqueId in this process");
        }
        if rank >= members {
            return wrong(Status::INVALID_ARGUMENT, format!("rank {rank} of {members} members"));
        }
        let Some(device) = device else {
            return wrong(Status::UNHANDLED_CUDA_ERROR, "no context is current, so the device is not known");
        };
        let clique = self.cliques.entry(id).or_insert_with(|| Clique {
            members: vec![None; members],
            exchange: Shared::new(members),
            has_failed: false,
            calls: HashMap::new(),
        });
        if clique.members.len() != members || clique.members[rank].is_some() {
            let sentence = format!("rank {rank} of {members} joins a clique of {} twice", clique.members.len());
            return wrong(Status::INVALID_USAGE, sentence);
        }
        if let Some(other) = clique.members.iter().position(|member| member.is_some_and(|(there, _)| there == device)) {
            let sentence = format!("ranks {other} and {rank} are both on device {device}");
            return wrong(Status::INVALID_USAGE, sentence);
        }
        clique.members[rank] = Some((device, std::thread::current().id()));
        let (sent, received) = (HashMap::new(), HashMap::new());
        let (async_error, collectives) = (Status::SUCCESS, 0);
        Ok(self.communicators.add(Communicator { clique: id, rank, device, async_error, collectives, sent, received }))
    }

    /// Whether all members of a clique have joined.
    pub fn is_complete(&self, id: u64) -> bool {
        self.cliques.get(&id).is_some_and(|clique| clique.members.iter().all(Option::is_some))
    }

    fn member(&self, communicator: u64) -> Nccl<(&Communicator, &Clique)> {
        let (member, clique) = self.joined(communicator)?;
        if !self.is_complete(member.clique) {
            return wrong(Status::INVALID_USAGE, "a communicator is used before all ranks have joined");
        }
        Ok((member, clique))
    }

    /// Returns a member, also if others have not joined.
    fn joined(&self, communicator: u64) -> Nccl<(&Communicator, &Clique)> {
        let found = self.communicators.get(communicator);
        let member = found.or_else(|sentence| wrong(Status::INVALID_ARGUMENT, sentence))?;
        match self.cliques.get(&member.clique) {
            Some(clique) => Ok((member, clique)),
            None => wrong(Status::INVALID_ARGUMENT, "a communicator has no clique"),
        }
    }

    /// Records that the group in which members joined a clique has failed: its communicators must be aborted.
    pub fn fail(&mut self, id: u64) {
        if let Some(clique) = self.cliques.get_mut(&id) {
            clique.has_failed = true;
        }
    }

    /// Returns the number of communicators of failed groups that were not aborted.
    pub fn leaked(&self) -> usize {
        let has_failed = |communicator: &Communicator| {
            self.cliques.get(&communicator.clique).is_some_and(|clique| clique.has_failed)
        };
        self.communicators.iter().filter(|communicator| has_failed(communicator)).count()
    }

    /// Describes a member, for the log.
    pub fn describe(&self, communicator: u64) -> Nccl<String> {
        let (member, clique) = self.joined(communicator)?;
        Ok(format!("rank {} of {} on device {}", member.rank, clique.members.len(), member.device))
    }

    pub fn rank_and_members(&self, communicator: u64) -> Nccl<(usize, usize)> {
        self.member(communicator).map(|(member, clique)| (member.rank, clique.members.len()))
    }

    pub fn async_error(&self, communicator: u64) -> Nccl<Status> {
        self.member(communicator).map(|(member, _)| member.async_error)
    }

    /// Ends the work of a communicator, and removes it.
    pub fn abort(&mut self, communicator: u64) -> Nccl {
        let (member, clique) = self.joined(communicator)?;
        clique.exchange.lock().abort(member.rank);
        let _ = self.communicators.remove(communicator);
        Ok(())
    }

    /// Removes a communicator, whose work must be complete.
    pub fn destroy(&mut self, communicator: u64) -> Nccl {
        let (member, clique) = self.member(communicator)?;
        if clique.exchange.lock().pending[member.rank] > 0 {
            let sentence = format!("the communicator of rank {} is destroyed before its work is complete", member.rank);
            return wrong(Status::INVALID_USAGE, sentence);
        }
        let (id, exchange) = (member.clique, clique.exchange.clone());
        let _ = self.communicators.remove(communicator);
        let is_last = self.communicators.iter().all(|other| other.clique != id);
        match exchange.lock().leftovers().filter(|_| is_last) {
            Some(leftovers) => wrong(Status::INVALID_USAGE, format!("a clique is destroyed, but {leftovers}")),
            None => Ok(()),
        }
    }

    /// Checks the arguments of a call.
    pub fn check(&self, pending: &Pending, is_in_group: bool) -> Nccl {
        let (member, clique) = self.member(pending.communicator)?;
        let here = std::thread::current().id();
        let mine = clique.members.iter().flatten().filter(|(_, thread)| *thread == here).count();
        if mine > 1 && !is_in_group {
            let sentence =
                format!("a thread with {mine} ranks of a clique calls outside of a group, and would wait forever");
            return wrong(Status::INVALID_USAGE, sentence);
        }
        if device_of_stream(pending.stream) != Some(member.device) {
            return wrong(Status::INVALID_USAGE, format!("the stream is not one of device {}", member.device));
        }
        let members = clique.members.len();
        let peer = match pending.call {
            Call::Collective(Collective { kind: Kind::Broadcast(root), .. }, ..) => root,
            Call::Collective(..) => 0,
            Call::Send { peer, .. } | Call::Receive { peer, .. } => peer,
        };
        if peer >= members {
            return wrong(Status::INVALID_ARGUMENT, format!("there is no rank {peer} of {members}"));
        }
        let ranges = match pending.call {
            Call::Collective(_, send, receive) => vec![send, receive],
            Call::Send { from, .. } => vec![from],
            Call::Receive { to, .. } => vec![to],
        };
        for (address, bytes) in ranges.into_iter().filter(|(_, bytes)| *bytes > 0) {
            if device_of_memory(address, bytes) != Some(member.device) {
                let sentence = format!("{bytes} bytes at {address:#x} are not memory of device {}", member.device);
                return wrong(Status::INVALID_ARGUMENT, sentence);
            }
        }
        match pending.call {
            Call::Collective(collective, send, receive) => may_overlap(&collective, member.rank, send, receive),
            Call::Send { .. } | Call::Receive { .. } => Ok(()),
        }
    }

    /// Submits calls of one communicator together.
    pub fn submit(&mut self, communicator: u64, calls: &[Pending]) -> Nccl {
        let (member, clique) = self.member(communicator)?;
        let (id, rank, device) = (member.clique, member.rank, member.device);
        let (exchange, stream) = (clique.exchange.clone(), calls[0].stream);
        if calls.iter().any(|call| call.stream != stream) {
            return wrong(Status::INVALID_USAGE, "one communicator with two streams in a group is not simulated");
        }
        let steps = calls.iter().map(|call| self.step(id, communicator, call)).collect::<Nccl<Vec<Step>>>()?;
        if calls.iter().any(|call| call.failure == Some(Failure::Async))
            && let Ok(member) = self.communicators.get_mut(communicator)
        {
            member.async_error = Status::REMOTE_ERROR;
        }
        exchange.lock().pending[rank] += 1;
        let (entered, waiting, leaving) = (steps.clone(), steps.clone(), steps);
        let [first, second, third] = [(); 3].map(|()| exchange.clone());
        let sent =
            enqueue_gated((device, stream), "NCCL", || true, move |memory| first.lock().enter(rank, &entered, memory));
        let sent = sent.and_then(|()| {
            let is_open = move || second.lock().is_open(rank, &waiting);
            enqueue_gated((device, stream), "NCCL", is_open, move |memory| third.lock().leave(rank, &leaving, memory))
        });
        sent.or_else(|status| {
            wrong(Status::UNHANDLED_CUDA_ERROR, format!("the driver does not take the work: {status:?}"))
        })
    }

    /// Numbers a call, and checks that it is the call of the other members.
    fn step(&mut self, clique: u64, communicator: u64, pending: &Pending) -> Nccl<Step> {
        let found = self.communicators.get_mut(communicator);
        let member = found.or_else(|sentence| wrong(Status::INVALID_ARGUMENT, sentence))?;
        let step = match pending.call {
            Call::Collective(collective, send, receive) => {
                let number = member.collectives;
                member.collectives += 1;
                if let Some(clique) = self.cliques.get_mut(&clique) {
                    let (other, called) = clique.calls.entry(number).or_insert((collective, 0));
                    if *other != collective {
                        let rank = member.rank;
                        let sentence = format!("rank {rank} calls {collective:?}, but other ranks call {other:?}");
                        return wrong(Status::INVALID_USAGE, sentence);
                    }
                    *called += 1;
                    if *called == clique.members.len() {
                        clique.calls.remove(&number);
                    }
                }
                Step::Collective { number, collective, send, receive }
            }
            Call::Send { peer, from } => Step::Send { number: next(&mut member.sent, peer), peer, from },
            Call::Receive { peer, to } => Step::Receive { number: next(&mut member.received, peer), peer, to },
        };
        let is_stuck = matches!(pending.failure, Some(Failure::Stuck | Failure::Async));
        Ok(if is_stuck { Step::Stuck } else { step })
    }
}

fn next(counts: &mut HashMap<usize, u64>, peer: usize) -> u64 {
    let count = counts.entry(peer).or_default();
    *count += 1;
    *count
}

/// Checks that a collective is in place as NVIDIA's documentation permits, or between separate arrays.
fn may_overlap(collective: &Collective, rank: usize, send: Range, receive: Range) -> Nccl {
    let one = (collective.count * collective.ty.bytes() * rank) as u64;
    let is_in_place = match collective.kind {
        Kind::AllReduce(_) | Kind::Broadcast(_) => send.0 == receive.0,
        Kind::ReduceScatter(_) => receive.0 == send.0.wrapping_add(one),
        Kind::AllGather => send.0 == receive.0.wrapping_add(one),
    };
    let ranges = [send, receive].map(|(address, bytes)| (address, bytes as u64));
    if overlaps(ranges[0], ranges[1]) && !is_in_place {
        return wrong(Status::INVALID_ARGUMENT, "the arrays overlap, and the call is not in place");
    }
    Ok(())
}
