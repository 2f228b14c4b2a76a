//! Data of one clique: contributions to collectives, and messages between two members.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simulated_gpu::finding::{Class, Problem};
use simulated_gpu::machine::Memory;

use super::element::{DataType, ReduceOp};

/// Results of aborted work. Kernels that were sent after it still read them.
pub(super) const GARBAGE: u8 = 0xa5;

/// Range of device memory: address and number of bytes.
pub(super) type Range = (u64, usize);

/// Collective, equal for all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collective {
    pub kind: Kind,
    pub ty: DataType,
    /// Number of elements of the argument `count`.
    pub count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    AllReduce(ReduceOp),
    ReduceScatter(ReduceOp),
    AllGather,
    /// From this rank.
    Broadcast(usize),
}

/// A member's part in a call.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Collective with this number, from and to memory of the member.
    Collective { number: u64, collective: Collective, send: Range, receive: Range },
    /// Message with this number to a peer.
    Send { number: u64, peer: usize, from: Range },
    /// Message with this number from a peer.
    Receive { number: u64, peer: usize, to: Range },
    /// Step that is never complete: a planned failure.
    Stuck,
}

/// Data that members have contributed and that others have not used yet.
#[derive(Debug)]
pub(super) struct Exchange {
    members: usize,
    /// Members whose communicators were aborted.
    aborted: Vec<bool>,
    /// Contributions by the number of the collective.
    collectives: HashMap<u64, Contributions>,
    /// Messages by sender, receiver and number.
    messages: HashMap<(usize, usize, u64), Vec<u8>>,
    /// Receives that have begun and whose senders have not left, by sender, receiver and number.
    receives: HashSet<(usize, usize, u64)>,
    /// Number of submitted calls of each member that are not complete.
    pub pending: Vec<usize>,
}

/// Contributions of all members to one collective.
#[derive(Debug)]
struct Contributions {
    all: Vec<Option<Vec<u8>>>,
    /// Number of members that have used them.
    left: usize,
}

/// Exchange that the work in streams shares.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<Exchange>>);

impl Shared {
    pub fn new(members: usize) -> Shared {
        Shared(Arc::new(Mutex::new(Exchange {
            members,
            aborted: vec![false; members],
            collectives: HashMap::new(),
            messages: HashMap::new(),
            receives: HashSet::new(),
            pending: vec![0; members],
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exchange {
    /// Ends the waiting of a member. Its results are then unspecified.
    pub fn abort(&mut self, rank: usize) {
        self.aborted[rank] = true;
    }

    /// Reads the contributions of a member to its steps.
    pub fn enter(&mut self, rank: usize, steps: &[Step], memory: &mut Memory) -> Result<(), Problem> {
        for step in steps {
            match *step {
                Step::Collective { number, send, .. } => {
                    let contribution = read(memory, send)?;
                    let none = Contributions { all: vec![None; self.members], left: 0 };
                    self.collectives.entry(number).or_insert(none).all[rank] = Some(contribution);
                }
                Step::Send { number, peer, from } => {
                    self.messages.insert((rank, peer, number), read(memory, from)?);
                }
                Step::Receive { number, peer, .. } => {
                    self.receives.insert((peer, rank, number));
                }
                Step::Stuck => {}
            }
        }
        Ok(())
    }

    /// Describes data that members have sent and others have not used, or receives without a message.
    pub fn leftovers(&self) -> Option<String> {
        let (collectives, messages) = (self.collectives.len(), self.messages.len());
        let receives = self.receives.len();
        let any = collectives + messages + receives > 0 && !self.aborted.contains(&true);
        any.then(|| format!("{collectives} collectives, {messages} messages and {receives} receives are incomplete"))
    }

    /// Whether the others have contributed all that a member's steps need, or the member has stopped waiting.
    pub fn is_open(&self, rank: usize, steps: &[Step]) -> bool {
        self.aborted[rank] || steps.iter().all(|step| self.is_complete(rank, step))
    }

    fn is_complete(&self, rank: usize, step: &Step) -> bool {
        match step {
            Step::Collective { number, .. } => {
                self.collectives.get(number).is_some_and(|found| found.all.iter().all(Option::is_some))
            }
            // NCCL copies to the receiver, so a send ends only after the receive has begun.
            Step::Send { number, peer, .. } => self.receives.contains(&(rank, *peer, *number)),
            Step::Receive { number, peer, .. } => self.messages.contains_key(&(*peer, rank, *number)),
            Step::Stuck => false,
        }
    }

    /// Writes the results of a member's steps.
    pub fn leave(&mut self, rank: usize, steps: &[Step], memory: &mut Memory) -> Result<(), Problem> {
        self.pending[rank] -= 1;
        if !steps.iter().all(|step| self.is_complete(rank, step)) {
            return steps.iter().try_for_each(|step| match *step {
                Step::Collective { receive: (address, bytes), .. } | Step::Receive { to: (address, bytes), .. } => {
                    if bytes == 0 {
                        Ok(())
                    } else {
                        memory.fill(address, GARBAGE, bytes)
                    }
                }
                Step::Send { .. } | Step::Stuck => Ok(()),
            });
        }
        for step in steps {
            match *step {
                Step::Collective { number, collective, receive, .. } => {
                    let Some(Contributions { all, left }) = self.collectives.get_mut(&number) else { continue };
                    let all: Vec<&[u8]> = all.iter().flatten().map(Vec::as_slice).collect();
                    let result = collective.result(rank, &all);
                    *left += 1;
                    if *left == self.members {
                        self.collectives.remove(&number);
                    }
                    write(memory, receive, &result)?;
                }
                Step::Receive { number, peer, to } => {
                    let message = self.messages.remove(&(peer, rank, number)).unwrap_or_default();
                    if message.len() != to.1 {
                        let (sent, wanted) = (message.len(), to.1);
                        let text = format!("rank {rank} receives {wanted} bytes, but rank {peer} sends {sent}");
                        return Err(Problem { class: Class::Launch, message: text });
                    }
                    write(memory, to, &message)?;
                }
                Step::Send { number, peer, .. } => {
                    self.receives.remove(&(rank, peer, number));
                }
                Step::Stuck => {}
            }
        }
        Ok(())
    }
}

impl Collective {
    /// Returns the bytes that a member sends and receives, in a clique of `members`.
    pub fn bytes(&self, rank: usize, members: usize) -> Option<[usize; 2]> {
        let one = self.count.checked_mul(self.ty.bytes())?;
        let all = one.checked_mul(members)?;
        Some(match self.kind {
            Kind::AllReduce(_) => [one, one],
            Kind::ReduceScatter(_) => [all, one],
            Kind::AllGather => [one, all],
            Kind::Broadcast(root) => [if rank == root { one } else { 0 }, one],
        })
    }

    /// Returns the result of a member from the contributions of all.
    fn result(&self, rank: usize, all: &[&[u8]]) -> Vec<u8> {
        let one = self.count * self.ty.bytes();
        match self.kind {
            Kind::AllReduce(op) => self.reduced(op, all),
            Kind::ReduceScatter(op) => {
                let parts: Vec<&[u8]> = all.iter().map(|sent| &sent[rank * one..(rank + 1) * one]).collect();
                self.reduced(op, &parts)
            }
            Kind::AllGather => all.concat(),
            Kind::Broadcast(root) => all[root].to_vec(),
        }
    }

    /// Reduces in the order of a ring that starts with rank 1.
    fn reduced(&self, op: ReduceOp, all: &[&[u8]]) -> Vec<u8> {
        let first = 1 % all.len();
        let mut total = all[first].to_vec();
        (1..all.len()).for_each(|next| op.combine(self.ty, &mut total, all[(first + next) % all.len()]));
        total
    }
}

fn read(memory: &mut Memory, (address, bytes): Range) -> Result<Vec<u8>, Problem> {
    if bytes == 0 { Ok(Vec::new()) } else { memory.read(address, bytes).map(<[u8]>::to_vec) }
}

fn write(memory: &mut Memory, (address, bytes): Range, content: &[u8]) -> Result<(), Problem> {
    if bytes == 0 { Ok(()) } else { memory.write(address, content) }
}
