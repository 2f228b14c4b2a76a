//! `wgmma`: executed for each warp separately. A warp computes 16 of the 64 rows, which need its own rows of A and all
//! of B, but nothing of the other warps.
//!
//! A wgmma is computed when it is issued. Its reads are accesses of a separate agent of the warp, which threads observe
//! when they wait for its group; so a write to an operand before the wait is a conflict.

use super::access::{LANES_OF_WARP, Who};
use super::block::{Block, Fault};
use super::descriptor::Descriptor;
use super::knowledge::Actor;
use super::progress::WarpProgress;
use super::reach::described;
use crate::code::round::{nearest, read};
use crate::code::{LeftFactor, MemoryOperand, Product, Slot, Type, TypeKind, WarpGroup};
use crate::finding::Class;
use crate::ptx::Space;

/// Number of warps of a warp group, and of rows of a warp.
const WARPS: usize = 4;
const ROWS: usize = 16;

const SINGLE: Type = Type { kind: TypeKind::Float, bits: 32, count: 1 };

impl Block<'_> {
    /// Executes a warp group instruction for the warp whose first thread is `first`.
    pub(super) fn warp_group(&mut self, first: usize, action: &WarpGroup) -> Result<(), Fault> {
        let warp = first / LANES_OF_WARP;
        let agent = self.threads.len() + warp;
        let progress = &mut self.warps[warp];
        match action {
            WarpGroup::Fence => progress.is_fenced = true,
            WarpGroup::Commit => {
                progress.ended += 1;
                progress.open = 0;
            }
            WarpGroup::Wait(pending) => {
                progress.done = progress.done.max(progress.ended.saturating_sub(*pending));
                let (done, is_busy) = (progress.done, progress.is_busy());
                for thread in first..first + LANES_OF_WARP {
                    let lane = &mut self.threads[thread];
                    lane.knows.learn(agent, done);
                    lane.knows.tick(thread);
                    (lane.done, lane.is_busy) = (done, is_busy);
                }
            }
            WarpGroup::Multiply(product) => self.multiply(first, product)?,
        }
        Ok(())
    }

    fn multiply(&mut self, first: usize, product: &Product) -> Result<(), Fault> {
        let warp = first / LANES_OF_WARP;
        let fault = |message: &str| Err(Fault::new(first, Class::Synchronization, message));
        if (warp / WARPS + 1) * WARPS * LANES_OF_WARP > self.threads.len() {
            return fault("wgmma takes four warps, the first one's number a multiple of four, and the block has less");
        }
        if !self.warps[warp].is_fenced {
            return fault("wgmma.mma_async is executed, and no wgmma.fence before");
        }
        let (columns, depth) = (product.columns, 256 / product.factors.bits as usize);
        let left = match product.a {
            LeftFactor::Memory(slot) => {
                let descriptor = self.descriptor(first, slot, product.transposed[0])?;
                self.factor(first, descriptor, (warp % WARPS * ROWS, ROWS), product.factors)?
            }
            LeftFactor::Registers(a) => {
                let kernel = self.kernel;
                let word = |lane: usize, register: usize| self.get(first + lane, kernel.list(a)[register]) as u32;
                of_registers(word, product.factors)
            }
        };
        let descriptor = self.descriptor(first, product.b, product.transposed[1])?;
        let right = self.factor(first, descriptor, (0, columns), product.factors)?;
        let adds = self.uniform(first, product.adds, 1)? == 1;
        let sums = multiplied(&left, &right, (columns, depth), product.negates);
        let (kernel, group) = (self.kernel, self.warps[warp].ended + 1);
        for lane in 0..LANES_OF_WARP {
            for (register, &slot) in kernel.list(product.d).iter().enumerate() {
                let row = lane / 4 + register / 2 % 2 * 8;
                let column = register / 4 * 8 + lane % 4 * 2 + register % 2;
                let before = if adds { read(SINGLE, self.get(first + lane, slot)) } else { 0.0 };
                self.set(first + lane, slot, nearest(SINGLE, sums[row * columns + column] + before));
                self.threads[first + lane].marks[slot as usize] = group;
            }
            self.threads[first + lane].is_busy = true;
        }
        let progress = &mut self.warps[warp];
        progress.open += 1;
        progress.products += 1;
        Ok(())
    }

    /// Returns the masked value of a slot, which must be equal in all lanes of a warp.
    fn uniform(&self, first: usize, slot: Slot, mask: u64) -> Result<u64, Fault> {
        let value = self.get(first, slot) & mask;
        match (first..first + LANES_OF_WARP).find(|&lane| self.get(lane, slot) & mask != value) {
            None => Ok(value),
            Some(lane) => {
                let message = "lanes of a warp have different descriptors or predicates of a wgmma";
                Err(Fault::new(lane, Class::Synchronization, message))
            }
        }
    }

    fn descriptor(&self, first: usize, slot: Slot, transposed: bool) -> Result<Descriptor, Fault> {
        let bits = self.uniform(first, slot, u64::MAX)?;
        Descriptor::decode(bits, transposed).ok_or_else(|| {
            let message =
                format!("the descriptor {bits:#x} of a matrix has a base offset, or bits that are no field's");
            Fault::new(first, Class::Launch, message)
        })
    }

    /// Reads rows of an operand from shared memory, as `k * rows + row`, starting at a given row.
    fn factor(
        &mut self,
        first: usize,
        descriptor: Descriptor,
        (start, rows): (usize, usize),
        ty: Type,
    ) -> Result<Vec<f64>, Fault> {
        self.learn_of_lanes(first);
        let (segment, since) = (self.memory.segments, self.first);
        let warp = first / LANES_OF_WARP;
        let (threads, granule) = (self.threads.len(), self.kernel.granules.shared);
        let Block { shared, warps, .. } = self;
        let WarpProgress { ended, stamp, knows, .. } = &warps[warp];
        let actor =
            Actor { agent: threads + warp, clock: ended + 1, stamp: *stamp, ..Actor::thread(first, threads, knows) };
        let who = Who::agent(actor, segment, since);
        let (bytes, step) = (ty.bits as usize / 8, descriptor.step());
        let (in_chunk, depth) = (16 / bytes, 32 / bytes);
        let mut elements = vec![0.0; rows * depth];
        for (at, row, k) in descriptor.chunks(start, rows, depth, in_chunk) {
            if at + 16 > shared.len() {
                let message = format!("16 bytes at {at:#x} are outside of the {} bytes of shared memory", shared.len());
                return Err(Fault::new(first, Class::Bounds, message));
            }
            let content = shared
                .view(at..at + 16, Some((&who, granule)))
                .map_err(|wrong| Fault::from_access(first, described(wrong, &SHARED, at as u64, 16, "multiplies")))?;
            for (number, element) in content.chunks(bytes).enumerate() {
                let bits = element.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                elements[(k + number * step.1) * rows + row + number * step.0] = read(ty, bits);
            }
        }
        Ok(elements)
    }

    /// Updates the knowledge that all lanes of a warp share.
    fn learn_of_lanes(&mut self, first: usize) {
        let lanes = first..first + LANES_OF_WARP;
        let asked = lanes.clone().map(|lane| u64::from(self.threads[lane].knows.seen(lane))).sum();
        let progress = &mut self.warps[first / LANES_OF_WARP];
        if progress.asked != asked {
            progress.asked = asked;
            progress.knows.clone_from(&self.threads[first].knows);
            self.threads[lanes].iter().for_each(|lane| progress.knows.meet(&lane.knows));
        }
        // A new group of wgmma needs a new stamp as well.
        progress.stamp = self.barriers.stamp();
    }

    /// Returns an error if the warps of a warp group have executed different numbers of wgmma.
    pub(super) fn check_warp_groups(&self) -> Result<(), Fault> {
        for (group, warps) in self.warps.chunks(WARPS).enumerate() {
            if let Some(warp) = warps.iter().position(|warp| warp.products != warps[0].products) {
                let message = format!(
                    "warp {} of a warp group has done {} wgmma, and its first warp {}",
                    warp, warps[warp].products, warps[0].products
                );
                let first = (group * WARPS + warp) * LANES_OF_WARP;
                return Err(Fault::new(first, Class::Synchronization, message));
            }
        }
        Ok(())
    }
}

const SHARED: MemoryOperand =
    MemoryOperand { space: Space::Shared, bytes: 4, is_signed: false, is_strong: false, base: 0, offset: 0 };

/// Returns the elements of A from registers, as `k * ROWS + row`; the distribution over lanes is that of `mma.sync`.
fn of_registers(word: impl Fn(usize, usize) -> u32, ty: Type) -> Vec<f64> {
    let in_word = 32 / ty.bits as usize;
    let mut elements = vec![0.0; ROWS * 8 * in_word];
    for lane in 0..LANES_OF_WARP {
        for register in 0..4 {
            let (row, k) = (lane / 4 + register % 2 * 8, (lane % 4 + register / 2 * 4) * in_word);
            for half in 0..in_word {
                let bits = word(lane, register) >> (half * ty.bits as usize % 32);
                elements[(k + half) * ROWS + row] = read(ty, u64::from(bits));
            }
        }
    }
    elements
}

/// Returns the products as `row * columns + column`, in `f64`; they are rounded once after the accumulator is added.
fn multiplied(left: &[f64], right: &[f64], (columns, depth): (usize, usize), negates: bool) -> Vec<f64> {
    let mut sums = vec![-0.0; ROWS * columns];
    for (row, sums) in sums.chunks_mut(columns).enumerate() {
        for k in 0..depth {
            let a = left[k * ROWS + row];
            let a = if negates { -a } else { a };
            let of_step = &right[k * columns..][..columns];
            sums.iter_mut().zip(of_step).for_each(|(sum, b)| *sum += a * b);
        }
    }
    sums
}
