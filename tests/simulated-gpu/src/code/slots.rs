//! Slots that instructions read and write.

use super::{Collective, Kernel, LeftFactor, Op, Phase, Request, Slot, WarpGroup};

/// Slots of an instruction. Unused operands are slot 0, which is no register.
#[derive(Debug, Default)]
pub struct Touched {
    /// Slots that the instruction reads.
    pub reads: Vec<Slot>,
    /// Slots that the instruction writes.
    pub writes: Vec<Slot>,
}

impl Kernel {
    /// Returns the slots of an operation, without accumulators of wgmma and operands of moves.
    pub fn touched(&self, op: &Op) -> Touched {
        let (reads, writes) = match *op {
            Op::Alu { d, abc, .. } | Op::Packed { d, abc, .. } | Op::Lop3 { d, abc, .. } => (abc.to_vec(), vec![d]),
            Op::Load { place, into } => (vec![place.base], self.list(into).to_vec()),
            Op::Store { place, from } => ([&[place.base], self.list(from)].concat(), vec![]),
            Op::Atomic { place, d, ab, .. } => (vec![place.base, ab[0], ab[1]], vec![d]),
            Op::CopyAsync { to, from, read, .. } => (vec![to.base, from.base, read], vec![]),
            Op::Barrier { id, count, .. } => (vec![id, count], vec![]),
            Op::SetCondition(slots) => (slots.to_vec(), vec![]),
            Op::Collective(number) => return self.touched_together(&self.collectives[number as usize]),
            Op::Request { number, .. } => return self.touched_by_request(&self.requests[number as usize]),
            Op::Move { .. } | Op::Split { .. } | Op::Join { .. } => (vec![], vec![]),
            Op::EndCopyGroup | Op::WaitForCopies(_) | Op::Branch(_) | Op::Return | Op::Trap | Op::Nothing => {
                (vec![], vec![])
            }
        };
        Touched { reads, writes }
    }

    fn touched_together(&self, collective: &Collective) -> Touched {
        let (reads, writes) = match *collective {
            Collective::Sync { mask } => (vec![mask], vec![]),
            Collective::Shuffle { d, p, a, b, c, mask, .. } => (vec![a, b, c, mask], vec![d, p]),
            Collective::Vote { d, a, mask, .. } | Collective::Reduce { d, a, mask, .. } => (vec![a, mask], vec![d]),
            Collective::Match { d, p, a, mask, .. } => (vec![a, mask], vec![d, p]),
            Collective::LoadMatrices(load) => (vec![load.row.base], self.list(load.d).to_vec()),
            Collective::Mma { d, a, b, c, .. } => {
                ([a, b, c].map(|slots| self.list(slots)).concat(), self.list(d).to_vec())
            }
            Collective::WarpGroup(WarpGroup::Fence | WarpGroup::Commit | WarpGroup::Wait(_)) => (vec![], vec![]),
            Collective::WarpGroup(WarpGroup::Multiply(product)) => match product.a {
                LeftFactor::Registers(a) => ([self.list(a), &[product.b, product.adds]].concat(), vec![]),
                LeftFactor::Memory(a) => (vec![a, product.b, product.adds], vec![]),
            },
        };
        Touched { reads, writes }
    }

    fn touched_by_request(&self, request: &Request) -> Touched {
        let (reads, writes) = match *request {
            Request::Initialize { barrier, count } => (vec![barrier.base, count], vec![]),
            Request::Invalidate(at) | Request::Prefetch(at) => (vec![at.base], vec![]),
            Request::Arrive { barrier, count, bytes, state } => (vec![barrier.base, count, bytes], vec![state]),
            Request::Expect { barrier, bytes } => (vec![barrier.base, bytes], vec![]),
            Request::Wait { barrier, phase: Phase::Parity(phase) | Phase::Of(phase), p } => {
                (vec![barrier.base, phase], vec![p])
            }
            Request::Copy { to, map, coordinates, barrier } => {
                ([&[to.base, map.base, barrier.base], self.list(coordinates)].concat(), vec![])
            }
            Request::Fence => (vec![], vec![]),
        };
        Touched { reads, writes }
    }
}
