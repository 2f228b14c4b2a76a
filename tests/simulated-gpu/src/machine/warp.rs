//! Execution of collective instructions of a warp.

use std::ops::Range;

use super::access::LANES_OF_WARP;
use super::block::{Block, Fault, ThreadStatus};
use super::mma::multiply;
use crate::code::{Collective, MatrixLoad, ShuffleMode, Slot, VoteMode};
use crate::finding::Class;

/// Threads that execute a collective instruction together.
struct Group {
    members: Vec<usize>,
    /// First thread of the warp.
    first: usize,
}

impl Block<'_> {
    /// Executes a collective instruction that all lanes have reached. Returns false if a missing lane waits for an
    /// mbarrier phase and may still come.
    pub(super) fn do_collective(&mut self, lanes: Range<usize>) -> Result<bool, Fault> {
        let mut absent = None;
        for thread in lanes.clone() {
            if self.threads[thread].status != ThreadStatus::AtCollective {
                continue;
            }
            let (collective, mask) = self.waiting_at(thread);
            if mask >> (thread - lanes.start) & 1 == 0 {
                let message = format!("the lane is not in the mask {mask:#010x} of its collective");
                return Err(Fault::new(thread, Class::Synchronization, message));
            }
            match self.group(thread, &collective, mask, lanes.clone()) {
                Ok(group) => {
                    self.perform(&collective, &group)?;
                    for &member in &group.members {
                        self.threads[member].at += 1;
                        self.threads[member].status = ThreadStatus::Ready;
                    }
                    return Ok(true);
                }
                Err(missing) => absent = absent.or(Some((thread, missing))),
            }
        }
        if self.threads[lanes.clone()].iter().any(|lane| matches!(lane.status, ThreadStatus::AtPhase { .. })) {
            return Ok(false);
        }
        let (thread, missing) = absent.unwrap_or((lanes.start, lanes.start));
        let (line, what) = (self.line(missing), self.threads[missing].status);
        let what = match what {
            ThreadStatus::Done => "has ended".to_owned(),
            ThreadStatus::AtBarrier { .. } => format!("waits at the barrier of PTX line {line}"),
            ThreadStatus::AtCollective
            | ThreadStatus::Ready
            | ThreadStatus::AtPhase { .. }
            | ThreadStatus::AtRequest(_) => format!("waits at PTX line {line}"),
        };
        let message = format!("the lane waits for thread {missing}, which {what}");
        Err(Fault::new(thread, Class::Synchronization, message))
    }

    /// Returns the collective instruction where a thread waits, and its lane mask.
    fn waiting_at(&self, thread: usize) -> (Collective, u64) {
        let crate::code::Op::Collective(number) = self.kernel.code[self.threads[thread].at as usize].op else {
            return (Collective::Sync { mask: 0 }, 0);
        };
        let collective = self.kernel.collectives[number as usize];
        let mask = match collective {
            Collective::Sync { mask }
            | Collective::Shuffle { mask, .. }
            | Collective::Vote { mask, .. }
            | Collective::Match { mask, .. }
            | Collective::Reduce { mask, .. } => self.get(thread, mask) & 0xffff_ffff,
            Collective::LoadMatrices(_) | Collective::Mma { .. } | Collective::WarpGroup(_) => 0xffff_ffff,
        };
        (collective, mask)
    }

    /// Returns the lanes of a mask; all must wait at the same instruction with the same mask, otherwise the result is a
    /// lane that does not. Lanes that have ended are not waited for, except by matrix instructions.
    fn group(&self, thread: usize, collective: &Collective, mask: u64, lanes: Range<usize>) -> Result<Group, usize> {
        let all = matches!(collective, Collective::LoadMatrices(_) | Collective::Mma { .. } | Collective::WarpGroup(_));
        let synchronises = matches!(collective, Collective::Sync { .. });
        let mut members = Vec::with_capacity(LANES_OF_WARP);
        for other in lanes.clone().filter(|other| mask >> (other - lanes.start) & 1 == 1) {
            match self.threads[other].status {
                ThreadStatus::Done if !all => {}
                ThreadStatus::AtCollective => {
                    let (theirs, their_mask) = self.waiting_at(other);
                    // Lanes may execute `bar.warp.sync` at different instructions.
                    let same_place = self.threads[other].at == self.threads[thread].at;
                    if their_mask != mask || !(same_place || synchronises && matches!(theirs, Collective::Sync { .. }))
                    {
                        return Err(other);
                    }
                    members.push(other);
                }
                ThreadStatus::Done
                | ThreadStatus::Ready
                | ThreadStatus::AtBarrier { .. }
                | ThreadStatus::AtPhase { .. }
                | ThreadStatus::AtRequest(_) => return Err(other),
            }
        }
        Ok(Group { members, first: lanes.start })
    }

    pub(super) fn get(&self, thread: usize, slot: Slot) -> u64 {
        self.registers[thread * self.kernel.image.len() + slot as usize]
    }

    pub(super) fn set(&mut self, thread: usize, slot: Slot, value: u64) {
        self.registers[thread * self.kernel.image.len() + slot as usize] = value;
    }

    fn perform(&mut self, collective: &Collective, group: &Group) -> Result<(), Fault> {
        match *collective {
            Collective::Sync { .. } => self.synchronise(group),
            Collective::Shuffle { mode, d, p, a, b, c, .. } => return self.shuffle(group, mode, [d, p], [a, b, c]),
            Collective::Vote { mode, d, a, .. } => {
                let holds = |thread: &&usize| self.get(**thread, a) & 1 == 1;
                let holding: Vec<usize> = group.members.iter().filter(holds).copied().collect();
                let answer = match mode {
                    VoteMode::All => u64::from(holding.len() == group.members.len()),
                    VoteMode::Any => u64::from(!holding.is_empty()),
                    VoteMode::Uniform => u64::from(holding.is_empty() || holding.len() == group.members.len()),
                    VoteMode::Ballot => holding.iter().fold(0, |mask, thread| mask | 1 << (thread - group.first)),
                };
                group.members.iter().for_each(|&thread| self.set(thread, d, answer));
            }
            Collective::Match { all, d, p, a, bits, .. } => self.compare(group, all, [d, p], a, bits),
            Collective::Reduce { run, d, a, .. } => {
                let values = group.members.iter().map(|&thread| self.get(thread, a));
                let total = values.reduce(|x, y| run(x, y, 0)).unwrap_or(0);
                group.members.iter().for_each(|&thread| self.set(thread, d, total));
            }
            Collective::LoadMatrices(load) => {
                whole_warp("ldmatrix", group)?;
                self.load_matrices(group, load)?;
            }
            Collective::WarpGroup(action) => {
                whole_warp("wgmma", group)?;
                self.warp_group(group.first, &action)?;
            }
            Collective::Mma { fragments, d, a, b, c } => {
                whole_warp("mma", group)?;
                let kernel = self.kernel;
                let read = |slots| {
                    let of_lane = |lane| kernel.list(slots).iter().map(move |&slot| (lane, slot));
                    let all = (0..LANES_OF_WARP).flat_map(of_lane);
                    all.map(|(lane, slot)| self.get(group.first + lane, slot) as u32).collect::<Vec<u32>>()
                };
                let results = multiply(fragments, &read(a), &read(b), &read(c));
                let registers = kernel.list(d);
                for (lane, values) in results.chunks(registers.len()).enumerate() {
                    for (&slot, &value) in registers.iter().zip(values) {
                        self.set(group.first + lane, slot, u64::from(value));
                    }
                }
            }
        }
        Ok(())
    }

    /// `ldmatrix`: lane `8 i + r` provides the address of row `r` of matrix `i`. Lane `4 g + t` receives word `t` of
    /// row `g`, or if transposed element `g` of rows `2 t` and `2 t + 1`.
    fn load_matrices(&mut self, group: &Group, load: MatrixLoad) -> Result<(), Fault> {
        let kernel = self.kernel;
        let address = |block: &Block<'_>, row: usize| {
            block.get(group.first + row, load.row.base).wrapping_add(load.row.offset as i64 as u64)
        };
        let mut words = Vec::new();
        for (matrix, &slot) in kernel.list(load.d).iter().enumerate() {
            for row in 8 * matrix..8 * (matrix + 1) {
                let address = address(self, row);
                if address & 15 != 0 {
                    let message = format!("a row of a matrix at {address:#x} is not aligned to 16 bytes");
                    return Err(Fault::new(group.first + row, Class::Alignment, message));
                }
            }
            for lane in 0..LANES_OF_WARP {
                let (across, down) = (lane as u64 / 4, lane % 4);
                let thread = group.first + lane;
                let word = match load.transposed {
                    false => {
                        let row = address(self, 8 * matrix + lane / 4);
                        self.read_for(thread, &load.row, row + 4 * down as u64)?
                    }
                    true => {
                        let [low, high] = [0, 1].map(|next| address(self, 8 * matrix + 2 * down + next));
                        let low = self.read_for(thread, &load.row, low + 2 * across)?;
                        low | self.read_for(thread, &load.row, high + 2 * across)? << 16
                    }
                };
                words.push((thread, slot, word));
            }
        }
        // A result register may also be an address.
        words.into_iter().for_each(|(thread, slot, word)| self.set(thread, slot, word));
        Ok(())
    }

    /// Makes all prior accesses of each lane known to the other lanes.
    fn synchronise(&mut self, group: &Group) {
        let mut heard = [0; LANES_OF_WARP];
        for &member in &group.members {
            for (known, clock) in heard.iter_mut().zip(self.threads[member].heard) {
                *known = clock.max(*known);
            }
        }
        for &member in &group.members {
            self.threads[member].heard = heard;
            self.threads[member].heard[member - group.first] += 1;
        }
        if self.kernel.is_asynchronous {
            self.meet(&group.members);
        }
    }

    fn shuffle(
        &mut self,
        group: &Group,
        mode: ShuffleMode,
        [d, p]: [Slot; 2],
        [a, b, c]: [Slot; 3],
    ) -> Result<(), Fault> {
        let mut results = Vec::with_capacity(LANES_OF_WARP);
        for &thread in &group.members {
            let lane = (thread - group.first) as i64;
            let (distance, bounds) = (self.get(thread, b) as i64 & 31, self.get(thread, c) as i64);
            let (clamp, segment) = (bounds & 31, bounds >> 8 & 31);
            let (most, least) = (lane & segment | clamp & !segment, lane & segment);
            let (source, within) = match mode {
                ShuffleMode::Up => (lane - distance, lane - distance >= most),
                ShuffleMode::Down => (lane + distance, lane + distance <= most),
                ShuffleMode::Butterfly => (lane ^ distance, lane ^ distance <= most),
                ShuffleMode::Index => (least | distance & !segment, least | distance & !segment <= most),
            };
            let source = group.first + if within { source } else { lane } as usize;
            if !group.members.contains(&source) {
                let message = format!("the lane takes a value of thread {source}, which takes no part in the shuffle");
                return Err(Fault::new(thread, Class::Synchronization, message));
            }
            results.push((thread, self.get(source, a) & 0xffff_ffff, u64::from(within)));
        }
        for (thread, value, within) in results {
            self.set(thread, d, value);
            self.set(thread, p, within);
        }
        Ok(())
    }

    fn compare(&mut self, group: &Group, all: bool, [d, p]: [Slot; 2], a: Slot, bits: u32) {
        let value = |thread: usize| self.get(thread, a) << (64 - bits);
        let same = |thread: usize| {
            let same = group.members.iter().filter(|&&other| value(other) == value(thread));
            same.fold(0u64, |mask, other| mask | 1 << (other - group.first))
        };
        let everybody = group.members.iter().fold(0u64, |mask, other| mask | 1 << (other - group.first));
        let results: Vec<u64> = group.members.iter().map(|&thread| same(thread)).collect();
        for (&thread, same) in group.members.iter().zip(results) {
            let agreed = same == everybody;
            self.set(thread, d, if all && !agreed { 0 } else { same });
            self.set(thread, p, u64::from(agreed));
        }
    }
}

/// Checks that all 32 lanes take part in an instruction.
fn whole_warp(name: &str, group: &Group) -> Result<(), Fault> {
    if group.members.len() == LANES_OF_WARP {
        return Ok(());
    }
    let message = format!("{name} takes 32 lanes, and the warp has {}", group.members.len());
    Err(Fault::new(group.first, Class::Synchronization, message))
}
