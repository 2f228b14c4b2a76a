//! Calls of a member.

use xla_service::collective::{Operation, Part};

use super::element::{NcclOp, NcclReduction, NcclType};
use super::plan::Plan;

/// Location in an array of a member: operands come first, then results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub array: usize,
    /// Offset in bytes.
    pub offset: usize,
}

/// Work of a member. The steps of all members of a group are sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `ncclAllReduce` of `count` elements.
    AllReduce { from: Place, to: Place, count: usize, ty: NcclType, op: NcclOp },
    /// `ncclReduceScatter`, each member receives `count` elements.
    ReduceScatter { from: Place, to: Place, count: usize, ty: NcclType, op: NcclOp },
    /// `ncclAllGather`, each member sends this number of bytes.
    AllGather { from: Place, to: Place, bytes: usize },
    /// `ncclBroadcast` from a rank.
    Broadcast { from: Place, to: Place, bytes: usize, root: usize },
    /// `ncclSend` to a rank.
    Send { from: Place, bytes: usize, peer: usize },
    /// `ncclRecv` from a rank.
    Receive { to: Place, bytes: usize, peer: usize },
    /// Copy in the memory of the member.
    Copy { from: Place, to: Place, bytes: usize },
    /// Fills with zero bytes.
    Zero { to: Place, bytes: usize },
}

impl Plan {
    /// Returns the steps of a rank. `root` is the source of a broadcast. Steps on empty arrays are omitted.
    pub fn steps(&self, rank: usize, root: usize) -> Vec<Step> {
        let members = self.spec.members();
        let arrays = self.spec.arrays();
        let count = arrays.len();
        let all = arrays.iter().enumerate().filter(|(_, part)| part.bytes() > 0);
        if members == 1 {
            return all.map(|(i, part)| self.alone(i, part)).collect();
        }
        all.flat_map(|(i, part)| match self.spec.operation() {
            Operation::AllReduce(_) => {
                let NcclReduction { ty, op, .. } = self.reductions[i];
                let (from, to) = (at(i, 0), at(count + i, 0));
                vec![Step::AllReduce { from, to, count: part.bytes() / ty.bytes(), ty, op }]
            }
            Operation::ReduceScatter(_) => {
                let NcclReduction { ty, op, .. } = self.reductions[i];
                let run = run_bytes(part);
                let step = |o: usize| {
                    let (from, to) = (at(i, o * members * run), at(count + i, o * run));
                    Step::ReduceScatter { from, to, count: run / ty.bytes(), ty, op }
                };
                (0..part.outer).map(step).collect()
            }
            Operation::AllGather => {
                let bytes = run_bytes(part);
                let step = |o: usize| Step::AllGather {
                    from: at(i, o * bytes),
                    to: at(count + i, o * members * bytes),
                    bytes,
                };
                (0..part.outer).map(step).collect()
            }
            Operation::AllToAll => {
                let bytes = run_bytes(part);
                let step = |o: usize, peer: usize| {
                    let offset = (o * members + peer) * bytes;
                    let (from, to) = (at(i, offset), at(count + i, offset));
                    [Step::Send { from, bytes, peer }, Step::Receive { to, bytes, peer }]
                };
                (0..part.outer).flat_map(|o| (0..members).flat_map(move |peer| step(o, peer))).collect()
            }
            Operation::AllToAllTuple => {
                let bytes = part.bytes();
                vec![
                    Step::Send { from: at(i, 0), bytes, peer: i },
                    Step::Receive { to: at(count + i, 0), bytes, peer: i },
                ]
            }
            Operation::Permute(pairs) => {
                let bytes = part.bytes();
                let send = pairs.iter().find(|pair| pair.0 == rank);
                let receive = pairs.iter().find(|pair| pair.1 == rank);
                let send = send.map(|&(_, peer)| Step::Send { from: at(i, 0), bytes, peer });
                let to = at(count + i, 0);
                let receive = match receive {
                    Some(&(peer, _)) => Step::Receive { to, bytes, peer },
                    None => Step::Zero { to, bytes },
                };
                send.into_iter().chain([receive]).collect()
            }
            Operation::Broadcast => {
                let (from, to) = (at(i, 0), at(count + i, 0));
                vec![Step::Broadcast { from, to, bytes: part.bytes(), root }]
            }
            // `plan` declines them.
            Operation::PermuteSlices(_) | Operation::RaggedAllToAll | Operation::Barrier => Vec::new(),
        })
        .collect()
    }

    /// Returns the step of a member that is alone in its group: its result is its operand.
    fn alone(&self, array: usize, part: &Part) -> Step {
        let (from, to) = (at(array, 0), at(self.spec.arrays().len() + array, 0));
        match self.spec.operation() {
            Operation::Permute(pairs) if pairs.is_empty() => Step::Zero { to, bytes: part.bytes() },
            _ => Step::Copy { from, to, bytes: part.bytes() },
        }
    }
}

fn at(array: usize, offset: usize) -> Place {
    Place { array, offset }
}

/// Returns the bytes of a run of a part.
fn run_bytes(part: &Part) -> usize {
    part.bytes() / part.outer.max(1)
}
